package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// plantFolder is how a test tells the processes that it starts which folder says
// what of them is to panic. The program that people have looks for none: see run.
const plantFolder = "TAPIN_TEST_PLANTS"

// struckNow takes a file away that orders something, and reports whether it was
// there: of several processes one obeys.
func struckNow(folder, order string) bool {
	file := filepath.Join(folder, order)
	return os.Rename(file, file+".struck") == nil
}

// plants is what has a name behind a guard panic: the file "at NAME" in the
// folder.
func plants() func(name string) bool {
	folder := os.Getenv(plantFolder)
	if folder == "" {
		return nil
	}
	return func(name string) bool { return struckNow(folder, "at "+name) }
}

// plantedRooms is what has a background room panic while it runs: the file "room
// NAME" in the folder.
func plantedRooms() func(room string) <-chan struct{} {
	folder := os.Getenv(plantFolder)
	if folder == "" {
		return nil
	}
	var mu sync.Mutex
	waiting := map[string][]chan struct{}{}
	go func() {
		for ; ; time.Sleep(20 * time.Millisecond) {
			mu.Lock()
			for room, all := range waiting {
				if len(all) > 0 && struckNow(folder, "room "+room) {
					close(all[len(all)-1]) // the one that runs now
					delete(waiting, room)
				}
			}
			mu.Unlock()
		}
	}()
	return func(room string) <-chan struct{} {
		struck := make(chan struct{})
		mu.Lock()
		defer mu.Unlock()
		waiting[room] = append(waiting[room], struck)
		return struck
	}
}

// dieReading is what ends a process as no guard can prevent, in the middle of
// the reading of a file: a fatal error of Go's runtime. The file "read NAME" in
// the folder orders it, and stays.
func dieReading() func(name string) error {
	folder := os.Getenv(plantFolder)
	if folder == "" {
		return nil
	}
	return func(name string) error {
		if _, err := os.Stat(filepath.Join(folder, "read "+strings.ReplaceAll(name, "/", "_"))); err == nil {
			var mu sync.Mutex
			mu.Unlock() //nolint:staticcheck // that is what is fatal
		}
		return nil
	}
}
