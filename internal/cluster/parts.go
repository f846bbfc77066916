// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sandpit.dev/internal/programs"
)

// Version is what the cluster's API server says of itself.
const Version = "v1.36.3"

// Parts are programs that are built of modules in a directory, each by its own go.mod.
type Parts struct {
	dir, name string
	builds    []build
}

// FindParts returns the cluster's programs, of the sandpit module that the working directory is in.
func FindParts() (Parts, error) {
	const version = "k8s.io/component-base/version"
	containerd, plugins := "github.com/containerd/containerd/v2/cmd/", "github.com/containernetworking/plugins/plugins/"
	return partsOf("kubernetes",
		build{"node", "0", nil, []string{plugins + "ipam/host-local", plugins + "main/bridge", plugins + "main/loopback", "./pause"}},
		build{"runc", "1", []string{"-tags=seccomp"}, []string{"github.com/opencontainers/runc"}},
		build{"containerd", "0", nil, []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"}},
		build{"kubernetes", "0", []string{"-X " + version + ".gitVersion=" + Version + " -X " + version + ".gitMajor=1 -X " + version + ".gitMinor=36"}, []string{"."}},
	)
}

// one returns a program of a module of its own, which has its name. A new version of it has no other program built anew.
func one(name string) (Parts, error) { return partsOf(name, build{name, "0", nil, []string{"."}}) }

// partsOf returns programs under a name and a sum of all sources.
func partsOf(name string, builds ...build) (Parts, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Parts{}, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module sandpit.dev\n") {
			break
		}
		if dir == filepath.Dir(dir) {
			return Parts{}, errors.New("the cluster's programs are built of the sources of sandpit.dev, and this is not among them")
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(dir, "internal", "cluster", "parts")
	sum := sha256.New()
	sum.Write([]byte(runtime.Version()))
	var modules []string
	for _, b := range builds {
		modules = append(modules, b.module)
	}
	slices.Sort(modules)
	for _, module := range modules {
		err = filepath.WalkDir(filepath.Join(dir, module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			sum.Write([]byte(path[len(dir):]))
			sum.Write(text)
			return err
		})
		if err != nil {
			return Parts{}, err
		}
	}
	return Parts{dir, name + "-" + hex.EncodeToString(sum.Sum(nil)[:8]), builds}, nil
}

// Name has a sum of all sources.
func (p Parts) Name() string { return p.name }

// Offer says that they can be built.
func (p Parts) Offer() string {
	return "what is missing is built with Go, which takes ten minutes at most"
}

// build is one call of go build: of packages of a module below the directory.
type build struct {
	module   string
	cgo      string
	args     []string
	packages []string
}

// Get builds them. What is compiled stays in Go's own cache.
func (p Parts) Get(ctx context.Context, _ *programs.Finder, root string) error {
	bin := filepath.Join(root, "usr", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, b := range p.builds {
		flags := []string{"build", "-p", "2", "-trimpath", "-o", bin + "/"}
		link := "-s -w"
		for _, a := range b.args {
			if strings.HasPrefix(a, "-X") {
				link += " " + a
			} else {
				flags = append(flags, a)
			}
		}
		cmd := exec.CommandContext(ctx, "nice", append(append([]string{"go"}, append(flags, "-ldflags", link)...), b.packages...)...)
		cmd.Dir = filepath.Join(p.dir, b.module)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=", "CGO_ENABLED="+b.cgo)
		if err := programs.Said(cmd); err != nil {
			return err
		}
	}
	return nil
}
