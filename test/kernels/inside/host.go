// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// host is the machine, with a server's data directory.
type host struct {
	dir    string // the disk of what is checked
	data   string
	before []string // what was there before there was a server
}

// refusal is a run of the program that failed.
type refusal struct {
	args []string
	err  error
	said string // on stderr
}

func (r *refusal) Error() string {
	return fmt.Sprintf("sandpit %s: %v: %s", strings.Join(r.args, " "), r.err, r.said)
}

// sandpit runs the program and gives what it wrote to stdout; the error is a [refusal].
func (h *host) sandpit(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(h.dir, "sandpit"), args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), &refusal{args, err, strings.TrimSpace(errs.String())}
	}
	return out.String(), nil
}

// doctor wants a host that fails nothing, and that says so of the file systems, which are
// modules here that nobody has loaded.
func (h *host) doctor(ctx context.Context) (string, error) {
	h.before = h.traces()
	out, err := h.sandpit(ctx, "", "doctor", "-o", "json", "--data", h.data)
	var checks []struct{ Name, Status, Detail, Remedy string }
	if e := json.Unmarshal([]byte(out), &checks); e != nil {
		return out, errors.Join(err, e)
	}
	var lacks []string
	for _, c := range checks {
		if c.Status == "ok" {
			continue
		}
		lacks = append(lacks, c.Name)
		if c.Status == "failed" || slices.Contains([]string{"overlay", "btrfs"}, c.Name) {
			err = errors.Join(err, fmt.Errorf("%s: %s → %s", c.Name, c.Detail, c.Remedy))
		}
	}
	if len(lacks) == 0 {
		return "", err
	}
	return "without " + strings.Join(lacks, ", "), err
}

// server starts a server and gives what ends it.
func (h *host) server(ctx context.Context) (end func() error, err error) {
	log, err := os.Create("/var/tmp/server.log")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(h.dir, "sandpit"), "serve", "--data", h.data, "--images", filepath.Join(h.dir, "images"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for {
		if text, _ := os.ReadFile(log.Name()); bytes.Contains(text, []byte("sandpit is ready")) {
			break
		}
		select {
		case err := <-gone:
			return nil, fmt.Errorf("the server ended (%v): %s", err, h.log())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-gone:
			return err
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			return errors.New("the server does not end")
		}
	}, nil
}

func (h *host) log() string {
	text, _ := os.ReadFile("/var/tmp/server.log")
	return string(text[max(0, len(text)-2000):])
}

// leftovers wants the host to be as it was before the server.
func (h *host) leftovers(context.Context) (string, error) {
	var left []string
	for range 50 { // the kernel lets go of mounts and groups in its own time
		left = slices.DeleteFunc(h.traces(), func(t string) bool { return slices.Contains(h.before, t) })
		if len(left) == 0 {
			return "", nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return strings.Join(left, "\n"), errors.New("that is left on the host")
}

// traces are what a server may leave: processes, loop devices, mounts, and groups that are
// somebody's. Two levels of groups of its own it keeps.
func (h *host) traces() (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(text), "sandpit") {
			found = append(found, "process "+strings.TrimSpace(string(text)))
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	found = append(found, loops...)
	if text, err := os.ReadFile("/proc/self/mounts"); err == nil {
		for line := range strings.Lines(string(text)) {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, "/sandpit") {
			if text, err := os.ReadFile(filepath.Join(path, "cgroup.events")); err == nil && bytes.Contains(text, []byte("populated 1")) {
				found = append(found, "group with processes "+path)
			}
		}
		return nil
	})
	return found
}
