// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package servers keeps the servers that a person signed in to: their addresses and tokens, in one
// file of the person's own.
package servers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/internal/atomicfile"
)

// Local is the name of this machine's own server, which no kept one has.
const Local = "local"

// Server is one that is kept.
type Server struct {
	Name  string `json:"name"`
	URL   string `json:"url"`             // without a slash at the end
	Token string `json:"token,omitempty"` // empty: signed out
}

// List is what the file has.
type List struct {
	Current string   `json:"current,omitempty"` // the name of the one that is used by default; empty: this machine's own
	Servers []Server `json:"servers"`           // by name
}

// maxFile bounds the file: what is longer is none of ours.
const maxFile = 1 << 20

// Path returns where the file is, or an error if the environment does not tell: below
// XDG_CONFIG_HOME or ~/.config, on macOS ~/Library/Application Support, on Windows %AppData%.
func Path(goos string, getenv func(string) string) (string, error) {
	dir, home := "", getenv("HOME")
	switch goos {
	case "windows":
		if dir = getenv("AppData"); dir == "" {
			return "", errors.New("%AppData% is not set")
		}
	case "darwin":
		if home != "" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	default:
		// A relative one is no valid one, and would be another in each directory.
		if dir = getenv("XDG_CONFIG_HOME"); !filepath.IsAbs(dir) && home != "" {
			dir = filepath.Join(home, ".config")
		}
	}
	if !filepath.IsAbs(dir) {
		return "", errors.New("HOME is not set to an absolute path")
	}
	return filepath.Join(dir, "sandpit", "servers.json"), nil
}

// Read returns what the file has; an empty list if there is none.
func Read(path string) (List, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return List{}, nil
	}
	if err != nil {
		return List{}, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return List{}, err
	}
	if len(b) > maxFile {
		return List{}, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	var l List
	if err := json.Unmarshal(b, &l); err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	for i, s := range l.Servers {
		if err := CheckName(s.Name); err != nil {
			return List{}, fmt.Errorf("%s: %w", path, err)
		}
		if slices.ContainsFunc(l.Servers[:i], func(o Server) bool { return o.Name == s.Name }) {
			return List{}, fmt.Errorf("%s: the server %q is there twice", path, s.Name)
		}
	}
	if _, ok := l.Find(l.Current); !ok && l.Current != "" {
		return List{}, fmt.Errorf("%s: the current server %q is not in the list", path, l.Current)
	}
	return l, nil
}

// Write puts l in the place of what the file has, for its owner alone to read.
func (l List) Write(path string) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, append(b, '\n'), 0o600)
}

// Find returns the server of a name.
func (l List) Find(name string) (Server, bool) {
	i := slices.IndexFunc(l.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return l.Servers[i], true
}

// At returns the server of an address.
func (l List) At(url string) (Server, bool) {
	i := slices.IndexFunc(l.Servers, func(s Server) bool { return s.URL == url })
	if i < 0 {
		return Server{}, false
	}
	return l.Servers[i], true
}

// Put keeps s, in the place of the one that has its name.
func (l *List) Put(s Server) {
	l.drop(s.Name)
	l.Servers = append(l.Servers, s)
	slices.SortFunc(l.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
}

// Remove forgets the server of a name, and reports whether it was there. If it was the current
// one, this machine's own is.
func (l *List) Remove(name string) bool {
	if l.Current == name {
		l.Current = ""
	}
	return l.drop(name)
}

func (l *List) drop(name string) bool {
	had := len(l.Servers)
	l.Servers = slices.DeleteFunc(l.Servers, func(s Server) bool { return s.Name == name })
	return len(l.Servers) < had
}

// Names returns the names of all.
func (l List) Names() []string {
	names := make([]string, 0, len(l.Servers))
	for _, s := range l.Servers {
		names = append(names, s.Name)
	}
	return names
}

const (
	maxName     = 64
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"
)

// CheckName refuses a name that could be taken for a URL or a flag, or steers a terminal.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxName || strings.Trim(name, nameLetters) != "" || name[0] == '-':
		return fmt.Errorf("%.80q is not a valid name of a server: 1 to %d letters, digits, dots, dashes, colons and underscores, and no dash at the beginning", name, maxName)
	case name == Local:
		return fmt.Errorf("%q is not a valid name of a kept server: it means this machine's own", name)
	}
	return nil
}

// NameOf returns a name for the server at a host, which has a port where that is not the usual one.
func NameOf(host string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(nameLetters, r) {
			return r
		}
		return -1
	}, host)
	name = strings.TrimLeft(name, "-")
	return name[:min(len(name), maxName)]
}
