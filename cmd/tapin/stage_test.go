package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/zalando/go-keyring"
	"golang.org/x/net/dns/dnsmessage"

	"tapin/internal/vault"
)

// stageFile, in the home of the user that the processes of a test run for, says
// that they play on a stage: example.com has an address, and the keychain is a
// file. It is no variable, because a browser's holder is given few of those. The
// program that people have looks for nothing of the kind: see run.
const stageFile = ".tapin-stage"

// onStage is where the stage is, or nothing.
func onStage() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	stage := filepath.Join(home, stageFile)
	if _, err := os.Stat(stage); err != nil {
		return ""
	}
	return stage
}

// publicAddress is what example.com has on the stage: one that the network
// guard lets pages reach, and behind which the test's upstream proxy stands.
var publicAddress = [4]byte{93, 184, 215, 14}

// standInForTheWeb answers for example.com and what is under it, so that guides
// can be followed to the letter on a machine without the web. Other names do
// not exist.
func standInForTheWeb() {
	if onStage() == "" {
		return
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asking, answering := net.Pipe()
		go answerNames(answering)
		return asking, nil
	}}
}

// answerNames is a name server at the end of one connection, which frames
// messages as over TCP.
func answerNames(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		length := make([]byte, 2)
		if _, err := io.ReadFull(c, length); err != nil {
			return
		}
		raw := make([]byte, int(length[0])<<8|int(length[1]))
		if _, err := io.ReadFull(c, raw); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(raw); err != nil || len(m.Questions) != 1 {
			return
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		name := strings.TrimSuffix(q.Name.String(), ".")
		switch known := name == "example.com" || strings.HasSuffix(name, ".example.com"); {
		case !known:
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: publicAddress},
			}}
		}
		out, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := c.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...)); err != nil {
			return
		}
	}
}

// keychainInAFile is a keychain for processes of a test, or nil for the
// system's.
func keychainInAFile() vault.Keyring {
	if stage := onStage(); stage != "" {
		return keychainFile(stage)
	}
	return nil
}

type keychainFile string

func (k keychainFile) Get(service, account string) (value string, err error) {
	err = k.change(func(all map[string]string) error {
		v, ok := all[service+"/"+account]
		if value = v; !ok {
			return keyring.ErrNotFound
		}
		return nil
	})
	return value, err
}

func (k keychainFile) Set(service, account, value string) error {
	return k.change(func(all map[string]string) error {
		all[service+"/"+account] = value
		return nil
	})
}

func (k keychainFile) Delete(service, account string) error {
	return k.change(func(all map[string]string) error {
		if _, ok := all[service+"/"+account]; !ok {
			return keyring.ErrNotFound
		}
		delete(all, service+"/"+account)
		return nil
	})
}

// change reads, changes and writes it, one process at a time.
func (k keychainFile) change(fn func(map[string]string) error) error {
	lock := flock.New(string(k) + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("keychain: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	all := map[string]string{}
	raw, err := os.ReadFile(string(k))
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keychain: %w", err)
	}
	if err := fn(all); err != nil {
		return err
	}
	if raw, err = json.Marshal(all); err != nil {
		return fmt.Errorf("keychain: %w", err)
	}
	return os.WriteFile(string(k), raw, 0o600)
}
