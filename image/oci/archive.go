// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// maxArchived bounds the entries of an archive of images: a layer and a config are one each.
const maxArchived = 10_000

// archive is the content of an archive of images, each file in one of this machine's.
type archive struct {
	dir   string
	files map[string]archived
	links map[string]string
}

type archived struct {
	path   string
	size   int64
	digest string
}

// readArchive keeps what an archive has in dir. It compares what is named by a digest with that.
func readArchive(ctx context.Context, r io.Reader, dir string, left *budget) (*archive, error) {
	plain, err := expand(r)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	a := &archive{dir: dir, files: make(map[string]archived), links: make(map[string]string)}
	entries := 0
	for tr := tar.NewReader(plain); ; {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, fault.Wrap(fault.Invalid, err, "this is not a whole tar archive: it ends, or has no header, after %d entries", entries).
					WithRemedy("send what docker save, skopeo copy … oci-archive: or tar of an OCI layout wrote")
			}
			return nil, err
		}
		if entries++; entries > maxArchived {
			return nil, refused("its archive has more than %d entries", maxArchived)
		}
		name, err := cleanName(h.Name)
		if err != nil {
			return nil, err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if err := a.keep(name, h, tr, entries, left); err != nil {
				return nil, err
			}
		case tar.TypeSymlink, tar.TypeLink:
			// docker save writes a layer once, and links to it.
			to := h.Linkname
			if h.Typeflag == tar.TypeSymlink {
				to = path.Join(path.Dir(name), to)
			}
			a.links[name] = path.Clean(to)
		}
	}
}

func (a *archive) keep(name string, h *tar.Header, r io.Reader, n int, left *budget) (err error) {
	if _, twice := a.files[name]; twice {
		return refused("its archive has %s twice", shown(name))
	}
	if err := left.room(h.Size); err != nil {
		return err
	}
	at := filepath.Join(a.dir, fmt.Sprint(n))
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := newHashed(left.reader(r))
	_, err = io.Copy(f, sum)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	got := sum.digest()
	if hex, ok := strings.CutPrefix(name, blobsFolder); ok && digestPrefix+hex != got {
		return refused("its archive has under the name %s a file of the digest %s", shown(name), got)
	}
	a.files[name] = archived{at, sum.n, got}
	return nil
}

const blobsFolder = "blobs/sha256/"

// file returns a file by its name, through links of the archive's own.
func (a *archive) file(name string) (archived, error) {
	at := path.Clean(name)
	for range maxLinks {
		if f, ok := a.files[at]; ok {
			return f, nil
		}
		to, ok := a.links[at]
		if !ok {
			break
		}
		at = to
	}
	return archived{}, refused("its archive lacks %s", shown(name))
}

// text returns a small file.
func (a *archive) text(name string, most int64) ([]byte, archived, error) {
	f, err := a.file(name)
	if err != nil {
		return nil, f, err
	}
	if f.size > most {
		return nil, f, refused("the file %s of its archive has %d bytes, more than %d", shown(name), f.size, most)
	}
	data, err := os.ReadFile(f.path)
	return data, f, err
}

func (f archived) open(context.Context) (io.ReadCloser, error) { return os.Open(f.path) }

// plan is an image before it is made.
type plan struct {
	digest string // of its manifest, or of its config where it has none
	names  []string
	config string // digest
	meta   Config
	arch   string
	layers []blob
}

// plans returns the images of an archive for an architecture.
func (a *archive) plans(arch string) ([]plan, error) {
	if _, err := a.file("index.json"); err == nil {
		return a.layout(arch)
	}
	if _, err := a.file("manifest.json"); err == nil {
		return a.saved(arch)
	}
	return nil, fault.New(fault.Invalid, "the archive has no index.json and no manifest.json, so it is no archive of images").
		WithRemedy("send what docker save, skopeo copy … oci-archive: or tar of an OCI layout wrote; a layout's own files, not the folder with them, are at the archive's top")
}

// Annotations with an image's name: the whole, and a tag or, by some tools, the whole.
const (
	wholeName = "io.containerd.image.name"
	shortName = "org.opencontainers.image.ref.name"
)

// layout reads an OCI image layout.
func (a *archive) layout(arch string) ([]plan, error) {
	data, _, err := a.text("index.json", maxManifest)
	if err != nil {
		return nil, err
	}
	top, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	if !top.isIndex() || len(top.Manifests) == 0 {
		return nil, refused("the index.json of its layout lists no manifests")
	}
	// Entries of one name are one image for several machines.
	var order []string
	groups := make(map[string][]descriptor)
	for _, m := range top.Manifests {
		name := m.Annotations[wholeName]
		if name == "" {
			name = m.Annotations[shortName]
		}
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], m)
	}
	var all []plan
	for _, name := range order {
		p, err := a.descend(document{Manifests: groups[name]}, arch)
		if err != nil {
			return nil, err
		}
		if r, err := ParseReference(name); err == nil && strings.ContainsAny(name, ":/") {
			p.names = []string{r.String()}
		}
		// The same image may be there under several names.
		if i := slices.IndexFunc(all, func(q plan) bool { return q.digest == p.digest }); i >= 0 {
			all[i].names = append(all[i].names, p.names...)
			continue
		}
		all = append(all, p)
	}
	return all, nil
}

// descend goes from an index to the manifest for an architecture.
func (a *archive) descend(d document, arch string) (plan, error) {
	return descend(d, arch, func(want descriptor) ([]byte, error) {
		data, f, err := a.text(blobsFolder+strings.TrimPrefix(want.Digest, digestPrefix), maxManifest)
		if err == nil && f.size != want.Size {
			err = refused("the blob %s has %d bytes, and is said to have %d", want.Digest, f.size, want.Size)
		}
		return data, err
	}, func(want descriptor) (blob, error) {
		f, err := a.file(blobsFolder + strings.TrimPrefix(want.Digest, digestPrefix))
		return blob{digest: want.Digest, size: want.Size, open: f.open}, err
	})
}

// descend goes from an index to the manifest for an architecture, and reads its config. text returns a
// small blob that has the digest asked for, layer where a layer is had.
func descend(d document, arch string, text func(descriptor) ([]byte, error), layer func(descriptor) (blob, error)) (plan, error) {
	for range maxNesting {
		want, err := d.choose(arch)
		if err != nil {
			return plan{}, err
		}
		data, err := text(want)
		if err != nil {
			return plan{}, err
		}
		if d, err = parseDocument(data); err != nil {
			return plan{}, err
		}
		if d.isIndex() {
			continue
		}
		return planOf(d, want.Digest, arch, text, layer)
	}
	return plan{}, refused("its index leads to an index more than %d times", maxNesting)
}

// planOf reads the config of a manifest.
func planOf(d document, digest, arch string, text func(descriptor) ([]byte, error), layer func(descriptor) (blob, error)) (plan, error) {
	data, err := text(*d.Config)
	if err != nil {
		return plan{}, err
	}
	f, meta, err := parseConfig(data, len(d.Layers), arch)
	if err != nil {
		return plan{}, err
	}
	p := plan{digest: digest, config: d.Config.Digest, meta: meta, arch: f.Architecture}
	for i, l := range d.Layers {
		b, err := layer(l)
		if err != nil {
			return plan{}, err
		}
		b.diffID = f.RootFS.DiffIDs[i]
		p.layers = append(p.layers, b)
	}
	return p, nil
}

// savedImage is an entry of docker save's manifest.json.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// saved reads what docker save wrote before it wrote layouts.
func (a *archive) saved(arch string) ([]plan, error) {
	data, _, err := a.text("manifest.json", maxManifest)
	if err != nil {
		return nil, err
	}
	var list []savedImage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, refused("the manifest.json of its archive cannot be read: %v", err)
	}
	if len(list) == 0 || len(list) > maxManifests {
		return nil, refused("the manifest.json of its archive lists %d images; want 1 to %d", len(list), maxManifests)
	}
	var all []plan
	for _, img := range list {
		if len(img.Layers) > maxLayers {
			return nil, refused("it has %d layers, more than %d", len(img.Layers), maxLayers)
		}
		data, f, err := a.text(img.Config, maxConfig)
		if err != nil {
			return nil, err
		}
		if hex := strings.TrimSuffix(path.Base(img.Config), ".json"); len(hex) == 64 && isHex(hex) && digestPrefix+hex != f.digest {
			return nil, refused("its config %s has the digest %s", shown(img.Config), f.digest)
		}
		parsed, meta, err := parseConfig(data, len(img.Layers), arch)
		if err != nil {
			return nil, err
		}
		p := plan{digest: f.digest, config: f.digest, meta: meta, arch: parsed.Architecture}
		for i, name := range img.Layers {
			l, err := a.file(name)
			if err != nil {
				return nil, err
			}
			p.layers = append(p.layers, blob{diffID: parsed.RootFS.DiffIDs[i], digest: l.digest, size: l.size, open: l.open})
		}
		for _, tag := range img.RepoTags {
			if r, err := ParseReference(tag); err == nil {
				p.names = append(p.names, r.String())
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// Import makes the images of an archive: what docker save wrote, or a tar of an OCI layout, compressed or
// not. as names the image, in place of the archive's own name; "" keeps that. If it fails, layers that were
// finished stay for the next try; what is not an image yet is gone.
func (s *Store) Import(ctx context.Context, r io.Reader, as string) ([]Image, error) {
	return s.importAs(ctx, r, as, s.As(""))
}

func (s *Store) importAs(ctx context.Context, r io.Reader, as string, b Bringer) ([]Image, error) {
	var named []string
	if as != "" {
		ref, err := ParseReference(as)
		if err != nil {
			return nil, err
		}
		if ref.Digest != "" {
			return nil, fault.InvalidField("name", "%s has a digest, which an archive has of its own", shown(as)).WithRemedy("leave out what begins with @")
		}
		named = []string{ref.String()}
		if err := b.may(named...); err != nil {
			return nil, err
		}
	}
	limits, err := b.left()
	if err != nil {
		return nil, err
	}
	l, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer s.ended(l)
	work, err := os.MkdirTemp(filepath.Join(s.dir, workName), "archive-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = removeAll(work) }()
	a, err := readArchive(ctx, r, work, newBudget(limits, s.dir))
	if err != nil {
		return nil, hostError(err)
	}
	plans, err := a.plans(s.arch)
	if err != nil {
		return nil, err
	}
	if named != nil {
		if len(plans) > 1 {
			return nil, fault.New(fault.Invalid, "the archive has %d images, so that one name is not enough", len(plans)).
				WithRemedy("leave the name out: each keeps its own")
		}
		plans[0].names = named
	}
	var all []Image
	for _, p := range plans {
		img, err := s.install(ctx, p, b, func(int, int64, bool) {})
		if err != nil {
			return all, hostError(err)
		}
		all = append(all, img)
	}
	return all, nil
}

// hostError sets the code of what went wrong on this machine.
func hostError(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch {
	case isFull(err):
		return fault.NoSpace(fault.HostDisk, err, "the image does not fit: the disk of images is full").
			WithRemedy("free room where images are kept, then try again; layers that were finished are kept")
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Denied, err, "the server may not make the image's files")
	}
	return err
}
