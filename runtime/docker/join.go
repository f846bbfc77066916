// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
// that it has are not sent to Docker; Podman wants each. joining is held.
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
		"rootfs":  map[string]any{"type": "layers", "diff_ids": append(base.RootFS.Layers[:len(base.RootFS.Layers):len(base.RootFS.Layers)], "sha256:"+hex.EncodeToString(sum.Sum(nil)))},
		"history": slices.Repeat([]map[string]string{{"created_by": madeBy}}, len(base.RootFS.Layers)+1),
	}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := d.writeImage(ctx, w, base, ref, config, layer, size)
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
func (d *Driver) writeImage(ctx context.Context, w io.Writer, base engineapi.Image, ref string, config any, layer *os.File, size int64) error {
	out := tar.NewWriter(w)
	below, err := d.writeBelow(ctx, out, base)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		of   any
	}{{"manifest.json", []map[string]any{{"Config": "config.json", "RepoTags": []string{ref}, "Layers": append(below, "layer.tar")}}}, {"config.json", config}} {
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

// maxManifest bounds the list of an image's layers that is read of an Engine.
const maxManifest = 1 << 20

// writeBelow returns the names of the layers of an image, and writes them where they have to be sent: Podman gives what it sends
// in the form that it takes.
func (d *Driver) writeBelow(ctx context.Context, out *tar.Writer, base engineapi.Image) (names []string, err error) {
	if !d.engine.Podman() {
		for n := range base.RootFS.Layers {
			names = append(names, fmt.Sprintf("there/%d/layer.tar", n))
		}
		return names, nil
	}
	saved, err := d.engine.SaveImage(ctx, base.ID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, saved.Close()) }()
	var manifest []struct{ Layers []string }
	written := map[string]bool{}
	for in := tar.NewReader(saved); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case h.Name == "manifest.json":
			if err := json.NewDecoder(io.LimitReader(in, maxManifest)).Decode(&manifest); err != nil {
				return nil, fmt.Errorf("the manifest of %s: %w", base.ID, err)
			}
		case h.Typeflag == tar.TypeReg && strings.HasSuffix(h.Name, ".tar"):
			if err := out.WriteHeader(&tar.Header{Name: belowDir + h.Name, Mode: 0o644, Size: h.Size}); err != nil {
				return nil, err
			}
			if _, err := io.Copy(out, in); err != nil {
				return nil, err
			}
			written[h.Name] = true
		}
	}
	if len(manifest) != 1 || len(manifest[0].Layers) != len(base.RootFS.Layers) {
		return nil, fmt.Errorf("the archive of %s has other layers than the image", base.ID)
	}
	for _, name := range manifest[0].Layers {
		if !written[name] {
			return nil, fmt.Errorf("the archive of %s lacks its layer %s", base.ID, sandbox.Clip(name, 80))
		}
		names = append(names, belowDir+name)
	}
	return names, nil
}

// belowDir is in an archive that is sent, of layers that the Engine gave.
const belowDir = "below/"

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
