// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"sandpit.dev/image/oci"
)

// contents are what the image is made of.
type contents struct {
	Program     string // path of the server's
	Authorities string // path of their certificates
	Version     string
	Name        string // of the image in the archive
}

// Where things are in the image.
const (
	insideProgram     = "usr/bin/sandpit"
	insideAuthorities = "etc/ssl/certs/ca-certificates.crt"
	insideConfig      = "etc/sandpit/sandpit.yaml"
)

// configText is the server's file of settings in the image.
const configText = `# Of the server in a container. SANDPIT_* and flags go before it; a file of your own takes its place.
listen: ":8080"
runtimes: [docker]
`

// image returns the image before it is written. remove is called when it has been.
func (c contents) image(ctx context.Context) (_ *oci.Saving, remove func(), err error) {
	arch, err := architecture(c.Program)
	if err != nil {
		return nil, nil, err
	}
	program, err := os.ReadFile(c.Program)
	if err != nil {
		return nil, nil, err
	}
	authorities, err := certificates(c.Authorities)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "sandpit-serverimage-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	files := []struct {
		name string
		mode os.FileMode
		data []byte
	}{
		{insideProgram, 0o755, program},
		{insideAuthorities, 0o644, authorities},
		{insideConfig, 0o644, []byte(configText)},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\n")},
	}
	var undated []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return nil, nil, err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return nil, nil, err
		}
		undated = append(undated, f.name)
	}
	for name, mode := range map[string]os.FileMode{
		"tmp": 0o777 | os.ModeSticky, "run": 0o755, "root": 0o700, "var/lib/sandpit": 0o700,
		"usr": 0o755, "usr/bin": 0o755, "etc": 0o755, "etc/ssl": 0o755, "etc/ssl/certs": 0o755, "etc/sandpit": 0o755, "var": 0o755, "var/lib": 0o755,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, nil, err
		}
		if err := os.Chmod(path, mode); err != nil { // whatever this process's mask is
			return nil, nil, err
		}
	}
	made, err := oci.Save(ctx, oci.Rootfs{
		Dir: dir, Architecture: arch, Reference: c.Name, Undated: undated, RootOwned: true,
		Config: oci.Config{
			Entrypoint: []string{"/" + insideProgram}, Cmd: []string{"serve"}, WorkingDir: "/", Ports: []string{"8080/tcp"},
			Env: []string{"PATH=/usr/bin", "HOME=/root", "SANDPIT_CONFIG=/" + insideConfig, "SANDPIT_STDIO=true"},
			Labels: map[string]string{
				"org.opencontainers.image.title": "sandpit", "org.opencontainers.image.version": c.Version, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	})
	return made, remove, err
}

// architecture returns the processor that a program is for, as images name it. It is static: there is no loader in the image.
func architecture(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("%s is not a program for Linux: %w; build it first: make build", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s is not static, and the image has no libraries; build it with CGO_ENABLED=0: make build", program)
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("%s is for %s; the server runs on amd64 and arm64", program, f.Machine)
}

// certificates reads a file of certificates, and keeps nothing else of it.
func certificates(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; install ca-certificates, or name another file with -ca", err)
	}
	var out bytes.Buffer
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s has a %q, which does not belong into an image", path, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("%s has no certificates; name another file with -ca", path)
	}
	return out.Bytes(), nil
}
