// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"time"
)

// Entry is one image of the catalogue that is made of another one.
type Entry struct {
	Name, Title string
	Aliases     []string
	// Base is the name of the image that the steps begin with.
	Base  string
	Steps []Step
	// Env is what processes in the finished image find besides the base's.
	Env map[string]string
	// Start is the program, with its arguments, that a sandbox which wants the image's own begins with;
	// nil: none. It decides nothing of what is on disk.
	Start []string
	// Presets and Domains are what the steps may reach: lists by name, and hosts.
	Presets, Domains []string
	// Packages are those that the lists name, whose versions are told.
	Packages []Package
	// Source says where the entry is, for messages.
	Source string
}

// Package is one that a list names.
type Package struct{ Tool, Name string }

// The tools of packages.
const (
	Apt = "apt"
	Pip = "pip"
	Npm = "npm"
)

// Step is one thing that is done to the base, in order.
type Step struct {
	// Title is the step in a line for people.
	Title string
	// Commands are run one after the other, each a program and its arguments.
	Commands [][]string `json:",omitempty"`
	// Files are written before the commands run.
	Files []File `json:",omitempty"`
	// User runs the commands: "root" of the sandbox, or "sandbox".
	User string
	// Dir is where the commands run; "": the user's own place.
	Dir string            `json:",omitempty"`
	Env map[string]string `json:",omitempty"`
	// Timeout ends each command.
	Timeout time.Duration `json:",omitempty"`
}

// File is one that a step writes.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	User    string
}

// Recipe is everything that decides what comes out, for a hash.
func (e Entry) Recipe() any {
	return struct {
		Base     string
		Steps    []Step
		Presets  []string
		Domains  []string
		Packages []Package
	}{e.Base, e.Steps, e.Presets, e.Domains, e.Packages}
}

// Chain returns for each step the hash of all that leads to it: the base by its digest and the steps
// so far, this one included.
func Chain(baseDigest string, steps []Step) []string {
	out := make([]string, len(steps))
	last := sha256.Sum256([]byte("sandpit build 1\n" + baseDigest + "\n"))
	for i, s := range steps {
		text, err := json.Marshal(s)
		if err != nil {
			panic("entry: a step cannot be encoded: " + err.Error())
		}
		last = sha256.Sum256(append(last[:], text...))
		out[i] = hex.EncodeToString(last[:])
	}
	return out
}
