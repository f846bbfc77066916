// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package packagestest installs what tests run of others: packages of npm and of pip, by the lockfiles in a test's
// directory or one below. They are kept in the user's cache, named after what the lockfiles say, and installed once.
package packagestest

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
	"strings"
	"syscall"
	"testing"
	"time"
)

// installBound is how long an installation may take: far more than a slow network needs.
const installBound = 5 * time.Minute

// absent says why packages cannot be had on this machine, by no fault of ours.
type absent struct{ reason string }

func (e absent) Error() string { return e.reason }

// need returns the directory of what is installed, or skips the test where it cannot be had.
func need(t testing.TB, what, dir string, err error) string {
	t.Helper()
	if e, ok := errors.AsType[absent](err); ok {
		t.Skip(e.reason)
	}
	if err != nil {
		t.Fatalf("install %s: %v", what, err)
	}
	return dir
}

// kept returns the directory named after files, which fill fills where it is not there yet.
func kept(name string, files []string, fill func(dir string, files map[string][]byte) error) (string, error) {
	sum, all := sha256.New(), make(map[string][]byte)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all[filepath.Base(file)] = b
		sum.Write(b)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", absent{"there is no folder for the packages of tests: " + err.Error()}
	}
	cache = filepath.Join(cache, "sandpit-test")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sum.Sum(nil)[:8]))
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	next := dir + ".new"
	if err := os.RemoveAll(next); err != nil {
		return "", err
	}
	if err := os.Mkdir(next, 0o700); err != nil {
		return "", err
	}
	for name, b := range all {
		if err := os.WriteFile(filepath.Join(next, name), b, 0o600); err != nil {
			return "", err
		}
	}
	if err := fill(next, all); err != nil {
		return "", err
	}
	return dir, os.Rename(next, dir)
}

// unreachable is what the tools say when there is no registry that serves us.
var unreachable = regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENOTCACHED|E401|E403|E5\d\d|NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError)\b`)

// Unreachable returns what an installation says that found no registry which serves us; "": it says nothing of that.
func Unreachable(said []byte) string { return string(unreachable.Find(said)) }

// run runs one step of an installation in dir.
func run(dir, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if why := unreachable.Find(out.Bytes()); why != nil || ctx.Err() != nil {
		return absent{"packages of tests cannot be fetched: " + filepath.Base(program) + " says " + strings.TrimSpace(string(why)) + " " + err.Error()}
	}
	return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out.Bytes())
}
