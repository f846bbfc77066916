// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// made returns contents whose program is a small one, and says that it is for a processor.
func made(t *testing.T, machine elf.Machine) contents {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := contents{Program: filepath.Join(dir, "program"), Authorities: filepath.Join(dir, "ca.pem"), Version: "v1.2.3", Name: "sandpit:test"}
	cmd := exec.Command("go", "build", "-trimpath", "-o", c.Program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.OpenFile(c.Program, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const at = 18 // in ELF's header, of either size
	if _, err = f.WriteAt(binary.LittleEndian.AppendUint16(nil, uint16(machine)), at); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	ca := append([]byte("a comment\n"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})...)
	if err := os.WriteFile(c.Authorities, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c contents) archive(t *testing.T) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	digest, err := write(t.Context(), c, path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return digest, b
}

// entries returns the files of an archive, and their headers.
func entries(t *testing.T, archive []byte) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	files, headers := map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	c := made(t, elf.EM_X86_64)
	digest, first := c.archive(t)
	later := time.Now().Add(48 * time.Hour)
	if err := os.Chtimes(c.Program, later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Program, 0o700); err != nil {
		t.Fatal(err)
	}
	mask := syscall.Umask(0o077)
	again, second := c.archive(t)
	syscall.Umask(mask)
	if digest != again || !bytes.Equal(first, second) {
		t.Errorf("%s and %s, %d and %d bytes", digest, again, len(first), len(second))
	}
	c.Version = "v1.2.4"
	if other, _ := c.archive(t); other == digest {
		t.Error("another version has the same digest")
	}
}

func TestAnArchiveSaysWhatIsInIt(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			digest, archive := made(t, machine).archive(t)
			files, _ := entries(t, archive)
			var index struct {
				Manifests []struct {
					Digest   string
					Platform struct{ Architecture, OS string }
				}
			}
			var saved []struct {
				Config   string
				RepoTags []string
				Layers   []string
			}
			for name, to := range map[string]any{"index.json": &index, "manifest.json": &saved} {
				if err := json.Unmarshal(files[name], to); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if len(index.Manifests) != 1 || index.Manifests[0].Digest != digest || index.Manifests[0].Platform.Architecture != arch || index.Manifests[0].Platform.OS != "linux" {
				t.Errorf("the index is %+v", index)
			}
			if len(saved) != 1 || !slices.Equal(saved[0].RepoTags, []string{"sandpit:test"}) || len(saved[0].Layers) != 1 {
				t.Fatalf("docker's list is %+v", saved)
			}
			var config struct {
				Architecture, OS string
				Config           struct {
					Entrypoint, Cmd, Env []string
					Labels               map[string]string
				}
			}
			if err := json.Unmarshal(files[saved[0].Config], &config); err != nil {
				t.Fatal(err)
			}
			if config.Architecture != arch || config.OS != "linux" || config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
				t.Errorf("the config is %+v", config)
			}
			if !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/sandpit"}) || !slices.Equal(config.Config.Cmd, []string{"serve"}) {
				t.Errorf("it runs %v %v", config.Config.Entrypoint, config.Config.Cmd)
			}
			inside, headers := entries(t, files[saved[0].Layers[0]])
			for name, h := range headers {
				if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(0, 0)) || h.Mode&0o6022 != 0 && name != "tmp/" {
					t.Errorf("%s has %d:%d, mode %o, %v", name, h.Uid, h.Gid, h.Mode, h.ModTime)
				}
			}
			if h := headers["tmp/"]; h == nil || h.Mode != 0o1777 {
				t.Errorf("/tmp is %+v", h)
			}
			if ca := inside["etc/ssl/certs/ca-certificates.crt"]; !bytes.HasPrefix(ca, []byte("-----BEGIN CERTIFICATE-----")) {
				t.Errorf("the certificates are %q", ca)
			}
			if h := headers["usr/bin/sandpit"]; h == nil || h.Mode != 0o755 || h.Size == 0 {
				t.Errorf("the program is %+v", h)
			}
		})
	}
}

func TestWhatIsNoImageIsRefused(t *testing.T) {
	good := made(t, elf.EM_X86_64)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	out := filepath.Join(dir, "image.tar")
	for name, test := range map[string]struct {
		change func(*contents)
		says   string
	}{
		"AScript":           {func(c *contents) { c.Program = file("script", "#!/bin/sh\n") }, "is not a program for Linux"},
		"AnotherProcessors": {func(c *contents) { *c = made(t, elf.EM_RISCV) }, "runs on amd64 and arm64"},
		"ADynamicProgram":   {func(c *contents) { c.Program = "/bin/sh" }, "is not static"},
		"NoAuthorities":     {func(c *contents) { c.Authorities = file("empty", "") }, "has no certificates"},
		"AKey":              {func(c *contents) { c.Authorities = file("key", key) }, "does not belong into an image"},
		"NoFile":            {func(c *contents) { c.Authorities = filepath.Join(dir, "none") }, "name another file with -ca"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			test.change(&c)
			if _, err := write(t.Context(), c, out); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}
