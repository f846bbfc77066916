// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// model is cgroup v2 over regular files: what the kernel does when a group is
// made, gets controllers, processes, and goes. It exists since the machines
// that test us often have all controllers on v1.
type model struct {
	root  string
	inner bool // see contain
	// stuck processes do not freeze.
	stuck bool
	// bytes of memory that cannot be taken from a group.
	needed int
	// steps left until one fails; negative is never.
	fuse  int
	owned []string // path:uid of each chown
	log   []string
}

var modelFiles = map[string][]string{
	"cpu":    {"cpu.max=max 100000"},
	"memory": {"memory.max=max", "memory.swap.max=max", "memory.current=4096", "memory.reclaim=", "memory.events=oom 0\noom_kill 0\n"},
	"pids":   {"pids.max=max", "pids.current=0", "pids.events=max 0\n"},
}

func newModel(t *testing.T, controllers string) *model {
	m := &model{root: filepath.Join(t.TempDir(), "cgroup v2"), fuse: -1}
	if err := os.Mkdir(m.root, 0o755); err != nil {
		t.Fatal(err)
	}
	m.put(m.root, "cgroup.controllers", controllers+"\n")
	m.put(m.root, "cgroup.subtree_control", "\n")
	m.put(m.root, "cgroup.procs", "1\n")
	return m
}

// contain makes the root behave as a container's: it is not the root of all groups.
func (m *model) contain(procs string) {
	m.inner = true
	m.put(m.root, "cgroup.type", "domain\n")
	m.put(m.root, "cgroup.procs", procs)
}

// mountinfo is a file that mounts the model, with the blank in its name escaped.
func (m *model) mountinfo(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "mountinfo")
	text := fmt.Sprintf("31 23 0:28 / %s rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", strings.ReplaceAll(m.root, " ", `\040`))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (m *model) put(dir, file, text string) {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		panic(err)
	}
}

func (m *model) get(dir, file string) string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(b))
}

func (m *model) path(dir int, path string) string {
	if dir == unix.AT_FDCWD {
		return path
	}
	base, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		panic(err)
	}
	return filepath.Join(base, path)
}

func (m *model) step(format string, args ...any) error {
	m.log = append(m.log, strings.ReplaceAll(fmt.Sprintf(format, args...), m.root+"/", ""))
	if m.fuse == 0 {
		return unix.ENOSPC
	}
	m.fuse--
	return nil
}

func (m *model) give(dir, controller string) {
	for _, f := range modelFiles[controller] {
		name, text, _ := strings.Cut(f, "=")
		m.put(dir, name, text)
	}
}

func (m *model) Mkdir(dir int, path string) error {
	p := m.path(dir, path)
	if err := m.step("mkdir %s", p); err != nil {
		return err
	}
	if err := os.Mkdir(p, 0o755); err != nil {
		return err
	}
	given := m.get(filepath.Dir(p), "cgroup.subtree_control")
	for name, text := range map[string]string{
		"cgroup.procs": "", "cgroup.threads": "", "cgroup.subtree_control": "\n", "cgroup.controllers": given + "\n",
		"cgroup.events": "populated 0\nfrozen 0\n", "cgroup.freeze": "0\n", "cgroup.kill": "",
		"cgroup.max.depth": "max\n", "cgroup.max.descendants": "max\n", "cgroup.type": "domain\n",
	} {
		m.put(p, name, text)
	}
	for _, c := range strings.Fields(given) {
		m.give(p, c)
	}
	return nil
}

func (m *model) groups(dir string) []string {
	var out []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

func (m *model) Rmdir(dir int, path string) error {
	p := m.path(dir, path)
	if _, err := os.Stat(p); err != nil {
		return unix.ENOENT
	}
	if m.get(p, "cgroup.procs") != "" || len(m.groups(p)) > 0 {
		return unix.EBUSY
	}
	return os.RemoveAll(p)
}

func (m *model) Chown(dir int, path string, uid int) error {
	p := m.path(dir, path)
	if err := m.step("chown %s", p); err != nil {
		return err
	}
	if _, err := os.Lstat(p); err != nil {
		return unix.ENOENT
	}
	m.owned = append(m.owned, fmt.Sprintf("%s:%d", strings.TrimPrefix(p, m.root+"/"), uid))
	return nil
}

func (m *model) Write(dir int, path string, value []byte) error {
	p := m.path(dir, path)
	if err := m.step("write %s %s", p, value); err != nil {
		return err
	}
	if _, err := os.Stat(p); err != nil {
		return unix.ENOENT
	}
	group, file := filepath.Split(p)
	group = filepath.Clean(group)
	switch file {
	case "cgroup.subtree_control":
		shared := (group != m.root || m.inner) && m.get(group, "cgroup.procs") != ""
		on := strings.Fields(m.get(group, "cgroup.subtree_control"))
		for _, word := range strings.Fields(string(value)) {
			c, ok := strings.CutPrefix(word, "+")
			if !ok {
				return unix.EINVAL
			}
			if !slices.Contains(strings.Fields(m.get(group, "cgroup.controllers")), c) {
				return unix.ENOENT
			}
			if slices.Contains(on, c) {
				continue
			}
			if shared && c == "memory" {
				return unix.EBUSY
			}
			on = append(on, c)
			for _, child := range m.groups(group) {
				if shared { // only threads can share cpu and pids
					m.put(child, "cgroup.type", "domain invalid\n")
				}
				m.give(child, c)
				m.put(child, "cgroup.controllers", strings.Join(on, " ")+"\n")
			}
		}
		m.put(group, file, strings.Join(on, " ")+"\n")
		return nil
	case "cgroup.kill":
		return filepath.WalkDir(group, func(path string, _ os.DirEntry, err error) error {
			if err == nil && filepath.Base(path) == "cgroup.procs" {
				err = os.Truncate(path, 0)
			}
			return err
		})
	case "memory.reclaim":
		use, _ := strconv.Atoi(m.get(group, "memory.current"))
		want, _ := strconv.Atoi(string(value))
		freed := min(want, max(0, use-m.needed))
		m.put(group, "memory.current", strconv.Itoa(use-freed))
		if freed < want {
			return unix.EAGAIN
		}
		return nil
	case "cgroup.freeze":
		if !m.stuck {
			err := filepath.WalkDir(group, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					m.put(path, "cgroup.events", "populated 1\nfrozen "+string(value)+"\n")
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	m.put(group, file, string(value)+"\n")
	return nil
}

// dump is every group below the root with the files that we write.
func (m *model) dump() map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(m.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == m.root {
			return err
		}
		rel := strings.TrimPrefix(path, m.root+"/")
		switch {
		case d.IsDir():
			out[rel] = ""
		case slices.Contains(strings.Fields("cgroup.subtree_control cgroup.max.depth cgroup.max.descendants cpu.max memory.max memory.swap.max pids.max"), d.Name()):
			if text := m.get(filepath.Dir(path), d.Name()); text != "" && text != "max" && text != "max 100000" {
				out[rel] = text
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return out
}
