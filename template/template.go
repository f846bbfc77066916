// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package template is the noun: a template has a name and versions, each an image or a disk with defaults for
// the sandboxes that are made of it. A version never changes. The package knows how they are named, compared
// and chosen, and not who keeps them.
package template

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/sandbox"
)

// Server is the Project of a template that all projects have.
const Server = ""

// Bounds of a template.
const (
	MaxName        = 64
	MaxDescription = 1024
	MaxCommand     = 8192
	MaxSteps       = 64
	MaxDockerfile  = 64 << 10
	MaxContexts    = 200 // archives of files for a Dockerfile
	MaxStepsBytes  = 64 << 10
	MaxSkills      = 50
	MaxOutput      = 4096 // of a step that failed
	MaxReady       = 5 * time.Minute
	DefaultReady   = time.Minute
	LeastInterval  = 50 * time.Millisecond
	DefaultLook    = 500 * time.Millisecond
)

// Status is how far a version is.
type Status string

// The statuses. Only Building changes, once.
const (
	Building Status = "building"
	Ready    Status = "ready"
	Failed   Status = "failed"
)

// Template is one version of a template.
type Template struct {
	ID      string
	Project string // Server: all have it
	Name    string
	Version int // from 1; none is given twice
	Spec    Spec

	Status   Status
	Snapshot sandbox.ID // the disk that sandboxes begin with; empty: the image's
	Image    string     // the image that its Dockerfile made, by its digest; empty: Spec.Image
	Failure  *Failure   // why it is Failed
	Inactive bool       // nothing is made of it until it is active again

	CreatedAt time.Time
	CreatedBy string
}

// Spec is what a version says. It is compared and kept as JSON.
type Spec struct {
	Description string                 `json:"description,omitempty"`
	Image       string                 `json:"image,omitempty"` // empty: the server's default image, or the disk's
	Limits      sandbox.Limits         `json:"limits,omitzero"` // zero fields are left to the server
	Env         map[string]string      `json:"env,omitempty"`
	Account     *sandbox.Account       `json:"account,omitempty"` // nil: what the caller says
	Network     *sandbox.NetworkPolicy `json:"network,omitempty"` // nil: what the caller or the server says
	Volumes     []Volume               `json:"volumes,omitempty"`
	Start       sandbox.Start          `json:"start,omitzero"`
	ForSkills   []string               `json:"for_skills,omitempty"` // names of skills that it is chosen by
	Steps       []string               `json:"steps,omitempty"`      // shell commands that make its disk, as root
	Disk        sandbox.ID             `json:"disk,omitempty"`       // the snapshot that is its disk
	Of          sandbox.ID             `json:"of,omitempty"`         // the sandbox of which Disk was taken for it, so that it is deleted with it
	Dockerfile  string                 `json:"dockerfile,omitempty"` // makes its image
	Contexts    []string               `json:"contexts,omitempty"`   // the archives of files that the Dockerfile copies, by their hashes
	Origin      string                 `json:"origin,omitempty"`     // Configuration, Sandbox, or "": a caller made it
}

// Values of Origin.
const (
	Configuration = "configuration" // the server's configuration says it
	Sandbox       = "sandbox"       // it was made for a sandbox, and is used again for a day
)

// Volume is a volume to mount.
type Volume struct {
	Volume   string `json:"volume"`
	Path     string `json:"path"`
	Sub      string `json:"sub,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Failure is the step that failed.
type Failure struct {
	Step     int    `json:"step"` // from 1; 0: none, the build was broken off
	Command  string `json:"command,omitempty"`
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output,omitempty"` // the last that it wrote
	Reason   string `json:"reason"`
}

// idPrefix begins every id.
const idPrefix = "tmpl_"

// NewID makes an id.
func NewID() string { return idPrefix + strings.ToLower(rand.Text()) }

// IsID reports whether ref can only be an id.
func IsID(ref string) bool { return strings.HasPrefix(ref, idPrefix) }

// CheckName returns why a name is not valid, or "".
func CheckName(name string) string {
	ok := name != "" && len(name) <= MaxName && !IsID(name) && !strings.Contains(name, "..")
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || i > 0 && strings.IndexByte("-._:", c) >= 0
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("it is 1 to %d letters, digits, dots, dashes, underscores and colons, begins with a letter or a digit, and is no id", MaxName)
}

// ParseRef reads NAME or NAME@VERSION; version 0 is the newest that is ready. Anything else is a name, which
// no template has then.
func ParseRef(ref string) (name string, version int) {
	at := strings.LastIndexByte(ref, '@')
	if at < 0 {
		return ref, 0
	}
	n, err := strconv.Atoi(ref[at+1:])
	if err != nil || n < 1 || strconv.Itoa(n) != ref[at+1:] {
		return ref, 0
	}
	return ref[:at], n
}

// Ref is how callers name the version.
func (t *Template) Ref() string { return t.Name + "@" + strconv.Itoa(t.Version) }

// Digest returns a hash of the spec.
func (s *Spec) Digest() string {
	b, err := json.Marshal(s)
	if err != nil { // a map of texts and numbers has a form
		panic(err)
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pick returns the version of those of one name that a reference means; nil if there is none. Version 0
// is the newest that is ready, or else the newest.
func Pick(versions []*Template, version int) *Template {
	var best *Template
	for _, t := range versions {
		switch {
		case version > 0:
			if t.Version == version {
				return t
			}
		case best == nil, t.Status == Ready && best.Status != Ready, t.Status == best.Status && t.Version > best.Version:
			best = t
		case t.Status != Ready && best.Status != Ready && t.Version > best.Version:
			best = t
		}
	}
	return best
}

// Usable reports whether sandboxes can be made of it.
func (t *Template) Usable() bool { return t.Status == Ready && !t.Inactive }

// BySkills returns, of templates that are ready, the one that is for most of the skills; of several the
// project's own before the server's, and the first by name. Of one name only the newest counts. Nil: none is.
func BySkills(all []*Template, skills []string) *Template {
	newest := make(map[[2]string]*Template)
	for _, t := range all {
		k := [2]string{t.Project, t.Name}
		if was := newest[k]; t.Usable() && (was == nil || was.Version < t.Version) {
			newest[k] = t
		}
	}
	var best *Template
	most := 0
	for _, t := range newest {
		n := 0
		for _, name := range t.Spec.ForSkills {
			if slices.Contains(skills, name) {
				n++
			}
		}
		if n == 0 || n < most {
			continue
		}
		if n > most || best.Project == Server && t.Project != Server || (best.Project == Server) == (t.Project == Server) && t.Name < best.Name {
			best, most = t, n
		}
	}
	return best
}
