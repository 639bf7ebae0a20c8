package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

// Chromium is a browser on this machine.
type Chromium struct {
	Path    string
	Version string // "156.0.8078.79"
}

// Major is the first number of the version.
func (c Chromium) Major() string {
	major, _, _ := strings.Cut(c.Version, ".")
	return major
}

// Find looks for a Chrome, Chromium or Edge: the configured path, or the usual
// names and places in the order in which people have them.
func Find(configured string) (Chromium, error) { return find(configured, "") }

func find(configured, cache string) (Chromium, error) {
	path := configured
	if path == "" {
		path = firstInstalled()
	}
	if path == "" {
		return Chromium{}, fault.New(fault.SessionCreateFailed, "find a browser", "no Chrome, Chromium or Edge is installed").
			WithHint("Install one (make setup does), or name it with TAPIN_CHROME.")
	}
	full, err := exec.LookPath(path)
	if err != nil {
		return Chromium{}, fault.New(fault.SessionCreateFailed, "find a browser", "%s is no program that can be run", path).
			WithHint("Correct browser.path in config.yaml, or TAPIN_CHROME.")
	}
	full = unwrapped(full)
	version, err := cachedVersion(full, cache)
	if err != nil {
		return Chromium{}, fault.New(fault.SessionCreateFailed, "find a browser", "%s does not say its version: %w", full, err).
			WithHint("Is it a Chrome, Chromium or Edge? Name another with TAPIN_CHROME.")
	}
	return Chromium{Path: full, Version: version}, nil
}

func firstInstalled() string {
	for _, name := range candidates() {
		if full, err := exec.LookPath(name); err == nil {
			return full
		}
	}
	return ""
}

func candidates() []string {
	if runtime.GOOS == "darwin" {
		var out []string
		home, _ := os.UserHomeDir()
		for _, root := range []string{"/Applications", filepath.Join(home, "Applications")} {
			for _, app := range []string{"Google Chrome", "Chromium", "Microsoft Edge"} {
				out = append(out, filepath.Join(root, app+".app", "Contents", "MacOS", app))
			}
		}
		return append(out, "chromium")
	}
	return []string{
		"google-chrome-stable", "google-chrome", "chromium", "chromium-browser",
		"microsoft-edge-stable", "microsoft-edge", "chrome",
	}
}

// unwrapped is the program behind a distribution's shell script, which would
// add flags and keys of its own and costs a shell at every start.
func unwrapped(path string) string {
	for script, program := range map[string]string{
		"/usr/bin/chromium":         "/usr/lib/chromium/chromium",
		"/usr/bin/chromium-browser": "/usr/lib/chromium-browser/chromium-browser",
	} {
		if path == script {
			if info, err := os.Stat(program); err == nil && info.Mode()&0o111 != 0 {
				return program
			}
		}
	}
	return path
}

// known is a version that was asked for before. Another file under the same
// path has another time or size.
type known struct {
	Path     string
	Modified time.Time
	Size     int64
	Version  string
}

// cachedVersion spares the start of a browser just to ask for its version. The
// cache is a convenience: whatever is wrong with it, the browser is asked.
func cachedVersion(path, cache string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || cache == "" {
		return versionOf(path, answerWithin)
	}
	now := known{Path: path, Modified: info.ModTime().UTC(), Size: info.Size()}
	var was known
	if raw, err := store.ReadFile(cache, 64<<10); err == nil && json.Unmarshal(raw, &was) == nil {
		if now.Version = was.Version; now == was && versionNumber.MatchString(was.Version) {
			return was.Version, nil
		}
	}
	if now.Version, err = versionOf(path, answerWithin); err != nil {
		return "", err
	}
	if info, err := os.Lstat(cache); err == nil && !info.Mode().IsRegular() {
		return now.Version, nil // writing to it might wait for ever
	}
	if raw, err := json.Marshal(now); err == nil {
		_ = os.WriteFile(cache, raw, 0o600)
	}
	return now.Version, nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`)

// answerWithin is far more than a browser needs to say its version.
const answerWithin = 10 * time.Second

// versionOf asks the browser. The answer is a few tens of milliseconds away,
// which is why the provider asks once.
func versionOf(path string, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environment()
	cmd.WaitDelay = time.Second // what a script has started may keep the pipe open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("it did not answer within %v", within)
	}
	if err != nil {
		return "", err
	}
	version := versionNumber.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("no version in its answer")
	}
	return version, nil
}
