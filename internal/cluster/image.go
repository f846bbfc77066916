// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandpit.dev/internal/programs"
)

// oneFile returns an image with one program.
func oneFile(program []byte, path string) (v1.Image, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	return ofLayer(b.Bytes(), v1.Config{Entrypoint: []string{"/" + path}})
}

// ofLayer returns an image of one layer.
func ofLayer(layer []byte, config v1.Config) (v1.Image, error) {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = "amd64", "linux", config
	return mutate.ConfigFile(img, file)
}

// writePause writes the archive of the image that holds a pod's namespaces.
func writePause(dir string, kit programs.Kit) error {
	program, err := os.ReadFile(kit.Path("pause"))
	if err != nil {
		return err
	}
	img, err := oneFile(program, "pause")
	if err != nil {
		return err
	}
	ref, err := name.NewTag("localhost/pause:1")
	if err != nil {
		return err
	}
	return tarball.WriteToFile(filepath.Join(dir, "pause.tar"), ref, img)
}

// Import gives the node an image of one file under a reference with a tag: the program at a path.
func (m *Machine) Import(ctx context.Context, reference string, program []byte, path string) error {
	img, err := oneFile(program, path)
	if err != nil {
		return err
	}
	return m.load(ctx, reference, img)
}

func (m *Machine) load(ctx context.Context, reference string, img v1.Image) error {
	ref, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tarball.Write(ref, img, &b); err != nil {
		return err
	}
	cmd := m.Command(ctx, "ctr", "-n", "k8s.io", "images", "import", "--digests=false", "-")
	cmd.Stdin = &b
	return programs.Said(cmd)
}

var lowerDir = regexp.MustCompile(`lowerdir=([^,:"\s]+)`)

// Lend gives the node an image under a reference with a tag without a copy of its files: one of an empty
// layer, for which a directory stands in, read-only.
func (m *Machine) Lend(ctx context.Context, reference, root string) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755, PAXRecords: map[string]string{"SANDPIT.root": root}}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	img, err := ofLayer(b.Bytes(), v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}})
	if err != nil {
		return err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	if err := m.load(ctx, reference, img); err != nil {
		return err
	}
	// A layer's first snapshot has the digest of its content for its name.
	const key = "lent"
	out, err := m.Command(ctx, "ctr", "-n", "k8s.io", "snapshots", "prepare", "--mounts", key, file.RootFS.DiffIDs[0].String()).Output()
	if err != nil {
		return fmt.Errorf("where the layer of %s is: %w", reference, err)
	}
	if err := programs.Said(m.Command(ctx, "ctr", "-n", "k8s.io", "snapshots", "rm", key)); err != nil {
		return err
	}
	layer := lowerDir.FindStringSubmatch(string(out))
	if layer == nil {
		return fmt.Errorf("where the layer of %s is: %s", reference, strings.TrimSpace(string(out)))
	}
	return programs.Said(m.Command(ctx, "mount", "--bind", "-o", "ro", root, layer[1]))
}
