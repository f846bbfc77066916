// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"sandpit.dev/sandbox"
)

// Machine is where package tools have their settings: the server's host, or an image.
type Machine struct {
	Files fs.FS               // from its root; nil: none
	Homes []string            // the directories of its users in Files, such as "root"
	Env   func(string) string // of programs there; nil: none
}

// Bounds of what is read.
const (
	maxSettings = 32 << 10  // bytes of a file of settings
	maxProgram  = 256 << 10 // bytes of a file of a tool's program, which has its defaults
	maxListed   = 64        // names of a directory that are looked at
)

// read returns a regular file; "" if there is none, or one of more than most bytes.
func (m Machine) read(name string, most int64) string {
	if m.Files == nil {
		return ""
	}
	// A file that is no regular one may wait for ever when it is opened.
	if info, err := fs.Stat(m.Files, name); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	f, err := m.Files.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(b)) > most {
		return ""
	}
	return string(b)
}

// list returns names in a directory, sorted, of the first maxListed of it.
func (m Machine) list(dir string) []string {
	if m.Files == nil {
		return nil
	}
	if info, err := fs.Stat(m.Files, dir); err != nil || !info.IsDir() {
		return nil
	}
	f, err := m.Files.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(maxListed) // what was read before an error counts
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

// env returns the value of the first of some variables that has one.
func (m Machine) env(names ...string) string {
	if m.Env == nil {
		return ""
	}
	for _, n := range names {
		if v := m.Env(n); v != "" {
			return v
		}
	}
	return ""
}

// host returns the host of an address of the web, in the form that names are compared in. What else
// is in the address, such as a password, goes no further.
func host(address string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.HasPrefix(u.Hostname(), "*") {
		return "", false
	}
	name, err := sandbox.CheckDomain("", u.Hostname())
	return name, err == nil
}

// hosts returns the hosts of addresses, each once. What has none is left out.
func hosts(addresses ...string) []string {
	var out []string
	for _, a := range addresses {
		if h, ok := host(a); ok && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}
