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
	"strings"

	"sandpit.dev/internal/programs"
)

// Version is what the cluster's API server says of itself.
const Version = "v1.36.3"

// Parts are the cluster's programs, which are built of the modules in a directory, each by its own go.mod.
type Parts struct{ dir, name string }

// FindParts returns those of the sandpit module that the working directory is in.
func FindParts() (Parts, error) {
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
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		sum.Write([]byte(path[len(dir):]))
		sum.Write(text)
		return err
	})
	return Parts{dir, "kubernetes-" + hex.EncodeToString(sum.Sum(nil)[:8])}, err
}

// Name has a sum of all sources.
func (p Parts) Name() string { return p.name }

// Offer says that they can be built.
func (p Parts) Offer() string { return "they are built with Go, which takes ten minutes" }

// build is one call of go build: of packages of a module below the directory.
type build struct {
	module   string
	cgo      string
	args     []string
	packages []string
}

func builds() []build {
	const version = "k8s.io/component-base/version"
	containerd, plugins := "github.com/containerd/containerd/v2/cmd/", "github.com/containernetworking/plugins/plugins/"
	return []build{
		{"node", "0", nil, []string{plugins + "ipam/host-local", plugins + "main/bridge", plugins + "main/loopback", "./pause"}},
		{"runc", "1", []string{"-tags=seccomp"}, []string{"github.com/opencontainers/runc"}},
		{"containerd", "0", nil, []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"}},
		{"kubernetes", "0", []string{"-X " + version + ".gitVersion=" + Version + " -X " + version + ".gitMajor=1 -X " + version + ".gitMinor=36"}, []string{"."}},
	}
}

// Get builds them. What is compiled stays in Go's own cache.
func (p Parts) Get(ctx context.Context, _ *programs.Finder, root string) error {
	bin := filepath.Join(root, "usr", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, b := range builds() {
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
