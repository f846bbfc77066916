// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// flattenDepth is from how many layers on those of a snapshot are made one, in the background, and
// flattenMost from how many on before a sandbox is made of it. An Engine makes no container of more
// than 125.
const (
	flattenDepth = 40
	flattenMost  = 100
)

// diskOf returns the id of the image that a snapshot is, for a sandbox of an image of the server's.
func (d *Driver) diskOf(ctx context.Context, id sandbox.ID, digest string) (string, error) {
	if err := checkSnapshotID(id); err != nil {
		return "", err
	}
	img, err := d.kept(ctx, id)
	if fault.Is(err, fault.NotFound) && d.hasLayer(id) {
		img, err = d.joinLayer(ctx, id, digest)
	}
	if err != nil {
		return "", err
	}
	if has := img.Config.Labels[labelImage]; has != digest {
		return "", fault.New(fault.Invalid, "snapshot %s is of the image %s, and the sandbox would be of %s", id, sandbox.Clip(has, 80), sandbox.Clip(digest, 80)).
			WithRemedy("make the sandbox of the snapshot's image")
	}
	if len(img.RootFS.Layers) > flattenMost {
		if err := d.flatten(ctx, d.snapshotRef(id), id); err != nil {
			return "", err
		}
		if img, err = d.kept(ctx, id); err != nil {
			return "", err
		}
	}
	return img.ID, nil
}

// joinLayer makes an image of a layer from outside, upon an image of the server's.
func (d *Driver) joinLayer(ctx context.Context, id sandbox.ID, digest string) (engineapi.Image, error) {
	if err := d.joining.lock(ctx); err != nil {
		return engineapi.Image{}, err
	}
	defer d.joining.unlock()
	if img, err := d.kept(ctx, id); !fault.Is(err, fault.NotFound) {
		return img, err // another call did
	}
	base, err := d.baseOf(ctx, digest)
	if err != nil {
		return engineapi.Image{}, err
	}
	f, err := d.layers.Open(string(id))
	if err != nil {
		return engineapi.Image{}, fault.Wrap(fault.NotFound, err, "snapshot %s is not kept", id)
	}
	defer func() { _ = f.Close() }()
	img, err := d.join(ctx, d.snapshotRef(id), id, base, digest, f)
	if err != nil {
		return engineapi.Image{}, err
	}
	return img, d.removeLayer(id)
}

// join has the Engine make a snapshot's image of one that it has, and of a layer upon it. The layers
// that it has are not sent. joining is held.
func (d *Driver) join(ctx context.Context, ref string, id sandbox.ID, base engineapi.Image, digest string, layer *os.File) (engineapi.Image, error) {
	sum := sha256.New()
	size, err := readAll(layer, sum)
	if err != nil {
		return engineapi.Image{}, err
	}
	config := map[string]any{
		"architecture": base.Architecture, "os": base.OS,
		"config": map[string]any{"Labels": map[string]string{
			labelServer: d.namespace, labelSnapshot: string(id), labelImage: digest,
		}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": append(base.RootFS.Layers[:len(base.RootFS.Layers):len(base.RootFS.Layers)], "sha256:"+hex.EncodeToString(sum.Sum(nil)))},
	}
	var layers []string
	for n := range base.RootFS.Layers {
		layers = append(layers, fmt.Sprintf("there/%d/layer.tar", n))
	}
	manifest := []map[string]any{{"Config": "config.json", "RepoTags": []string{ref}, "Layers": append(layers, "layer.tar")}}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeImage(w, manifest, config, layer, size)
		_ = w.CloseWithError(err)
		written <- err
	}()
	err = d.engine.LoadImage(ctx, r)
	_ = r.CloseWithError(io.ErrClosedPipe) // an Engine that refuses it reads no further
	if failed := <-written; failed != nil && err == nil {
		err = failed
	}
	if err != nil {
		return engineapi.Image{}, fault.Wrap(fault.Of(err), err, "the Engine at %s makes no image of snapshot %s: %s", d.engine.Host(), id, fault.As(err).Message).
			WithRemedy("see the server's log; Engines that keep images in containerd take no layer without those below it")
	}
	return d.keptAs(ctx, ref, id)
}

func readAll(f *os.File, w io.Writer) (int64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, f)
}

// writeImage writes an archive as docker load reads it.
func writeImage(w io.Writer, manifest, config any, layer *os.File, size int64) error {
	out := tar.NewWriter(w)
	for _, part := range []struct {
		name string
		of   any
	}{{"manifest.json", manifest}, {"config.json", config}} {
		b, err := json.Marshal(part.of)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(b))}); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	if err := out.WriteHeader(&tar.Header{Name: "layer.tar", Mode: 0o644, Size: size}); err != nil {
		return err
	}
	if _, err := readAll(layer, out); err != nil {
		return err
	}
	return out.Close()
}

// flattenLater is the driver's goroutine that makes one layer of a snapshot's many.
func (d *Driver) flattenLater(id sandbox.ID) {
	if err := d.flatten(d.running, d.snapshotRef(id), id); err != nil && d.running.Err() == nil && !fault.Is(err, fault.NotFound) {
		d.log.Warn("the layers of a snapshot were not made one; that is tried again before a sandbox has too many", "snapshot", id, "error", err)
	}
}

// flatten makes one layer of all that a snapshot, or what else has its label, has upon its image. What was
// made of it before keeps the many.
func (d *Driver) flatten(ctx context.Context, ref string, id sandbox.ID) error {
	img, err := d.keptAs(ctx, ref, id)
	if err != nil {
		return err
	}
	digest := img.Config.Labels[labelImage]
	base, err := d.baseOf(ctx, digest)
	if err != nil || len(img.RootFS.Layers) <= len(base.RootFS.Layers)+1 {
		return err
	}
	f, err := d.spool(func(f *os.File) error { return d.writeLayer(ctx, img, f) })
	if err != nil {
		return err
	}
	defer f.remove()
	if err := d.joining.lock(ctx); err != nil {
		return err
	}
	defer d.joining.unlock()
	if now, err := d.keptAs(ctx, ref, id); err != nil || now.ID != img.ID {
		return err // it was deleted or flattened meanwhile
	}
	if _, err := d.join(ctx, ref, id, base, digest, f.File); err != nil {
		return err
	}
	// The earlier image has no name now.
	return d.release(ctx, img.ID, img.ID)
}
