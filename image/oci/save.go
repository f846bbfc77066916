// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Rootfs is a root directory that is to be an archive. Nothing may change it meanwhile.
type Rootfs struct {
	Dir          string
	Architecture string // "": this machine's
	Config       Config
	Annotations  map[string]string // of the manifest
	// Reference names the image in the archive, and is no part of its digest; "": it has no name.
	Reference string
	// Made is what the history of the layers says of the one; "": there is no history.
	Made string
	// Undated are names of files whose times are left out: those that are not the image's own.
	Undated []string
	// RootOwned has all files be root's in the archive, whoever's they are here: of a root that was made by another user.
	RootOwned bool
}

// Added are the files that are made for each image of others, on each machine anew.
func Added() []string {
	return []string{"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/hostname", "etc/machine-id", "etc/resolv.conf", "etc/hosts"}
}

// Saving is an archive before it is written: all of it but the layer is there.
type Saving struct {
	Digest string // of the manifest
	Size   int64  // of the archive, in bytes

	root     Rootfs
	layer    descriptor
	config   []byte
	manifest []byte
}

const (
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar"
	refName     = "org.opencontainers.image.ref.name"
	layoutFile  = `{"imageLayoutVersion":"1.0.0"}`
	tarBlock    = 512
	saveReading = 1 << 20
)

// Save reads a root once, for its digest. Of one root it is the same on every machine: names are sorted, users are
// numbers, the times of directories and links are left out and those of files are whole seconds, and the one layer is
// not compressed.
func Save(ctx context.Context, r Rootfs) (*Saving, error) {
	if r.Architecture == "" {
		r.Architecture = hostArch()
	}
	sum := &summed{hash: sha256.New()}
	if err := writeLayer(ctx, sum, r); err != nil {
		return nil, err
	}
	s := &Saving{root: r, layer: descriptor{MediaType: ociLayer, Digest: sum.digest(), Size: sum.n}}
	ports := make(map[string]struct{}, len(r.Config.Ports))
	for _, p := range r.Config.Ports {
		ports[p] = struct{}{}
	}
	file := map[string]any{
		"created": time.Unix(0, 0).UTC(), "architecture": r.Architecture, "os": "linux",
		"config": map[string]any{
			"User": r.Config.User, "WorkingDir": r.Config.WorkingDir, "Entrypoint": r.Config.Entrypoint, "Cmd": r.Config.Cmd,
			"Env": r.Config.Env, "Labels": r.Config.Labels, "ExposedPorts": ports,
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{s.layer.Digest}},
	}
	if r.Made != "" {
		file["history"] = []map[string]any{{"created": time.Unix(0, 0).UTC(), "created_by": r.Made}}
	}
	var err error
	if s.config, err = json.Marshal(file); err != nil {
		return nil, err
	}
	config := describe(ociConfig, s.config)
	if s.manifest, err = json.Marshal(struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}{2, ociManifest, config, []descriptor{s.layer}, r.Annotations}); err != nil {
		return nil, err
	}
	s.Digest = describe(ociManifest, s.manifest).Digest
	for _, f := range s.files() {
		s.Size += tarBlock + padded(int64(len(f.data)))
	}
	s.Size += tarBlock + padded(s.layer.Size) + 2*tarBlock
	return s, nil
}

func padded(n int64) int64 { return (n + tarBlock - 1) / tarBlock * tarBlock }

func describe(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	return descriptor{MediaType: mediaType, Digest: digestPrefix + hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

type savedFile struct {
	name string
	data []byte
}

// files are all of the archive but its layer.
func (s *Saving) files() []savedFile {
	at := describe(ociManifest, s.manifest)
	at.Platform = &platform{Architecture: s.root.Architecture, OS: "linux"}
	if s.root.Reference != "" {
		at.Annotations = map[string]string{refName: s.root.Reference}
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []descriptor{at}})
	if err != nil {
		panic(err) // of strings and numbers alone
	}
	// Engines before Docker 25 read nothing but this.
	one := savedImage{Config: blobName(describe(ociConfig, s.config)), Layers: []string{blobName(s.layer)}}
	if s.root.Reference != "" {
		one.RepoTags = []string{s.root.Reference}
	}
	docker, err := json.Marshal([]savedImage{one})
	if err != nil {
		panic(err) // as above
	}
	return []savedFile{
		{"oci-layout", []byte(layoutFile)}, {"index.json", index}, {"manifest.json", docker},
		{blobName(describe(ociConfig, s.config)), s.config}, {blobName(at), s.manifest},
	}
}

func blobName(d descriptor) string { return blobsFolder + strings.TrimPrefix(d.Digest, digestPrefix) }

// Write writes the archive, for which it reads the root once more.
func (s *Saving) Write(ctx context.Context, w io.Writer) error {
	out := tar.NewWriter(w)
	header := func(name string, size int64) error {
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatPAX})
	}
	for _, f := range s.files() {
		if err := header(f.name, int64(len(f.data))); err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	if err := header(blobName(s.layer), s.layer.Size); err != nil {
		return err
	}
	sum := &summed{w: out, hash: sha256.New()}
	if err := writeLayer(ctx, sum, s.root); err != nil {
		return err
	}
	if sum.digest() != s.layer.Digest {
		return errors.New("the root changed while it was written")
	}
	return out.Close()
}

// summed counts and hashes what is written.
type summed struct {
	w    io.Writer // nil: nowhere
	hash hash.Hash
	n    int64
}

func (s *summed) Write(p []byte) (int, error) {
	if s.w != nil {
		if n, err := s.w.Write(p); err != nil {
			return n, err
		}
	}
	s.n += int64(len(p))
	return s.hash.Write(p)
}

func (s *summed) digest() string { return digestPrefix + hex.EncodeToString(s.hash.Sum(nil)) }

// layerWriter writes a root as a layer.
type layerWriter struct {
	root    *os.Root
	out     *tar.Writer
	undated []string
	owned   bool             // all is root's
	names   map[inode]string // of files that have several
	buf     []byte
}

type inode struct{ dev, ino uint64 }

func writeLayer(ctx context.Context, w io.Writer, r Rootfs) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	l := &layerWriter{root: root, out: tar.NewWriter(w), undated: r.Undated, owned: r.RootOwned, names: make(map[inode]string), buf: make([]byte, saveReading)}
	if err := l.directory(ctx, "."); err != nil {
		return err
	}
	return l.out.Close()
}

// directory writes what a directory has, sorted by name.
func (l *layerWriter) directory(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f, err := openDir(l.root, name)
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		if err := l.entry(ctx, path.Join(name, base)); err != nil {
			return fmt.Errorf("save %s: %w", shown(path.Join(name, base)), err)
		}
	}
	return nil
}

func (l *layerWriter) entry(ctx context.Context, name string) error {
	info, err := l.root.Lstat(name)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fs.ErrInvalid
	}
	h := &tar.Header{Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if l.owned {
		h.Uid, h.Gid = 0, 0
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		if err := l.header(h, name, unix.O_DIRECTORY); err != nil {
			return err
		}
		return l.directory(ctx, name)
	case unix.S_IFLNK:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = l.root.Readlink(name); err != nil {
			return err
		}
		return l.out.WriteHeader(h)
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
		return l.out.WriteHeader(h)
	case unix.S_IFREG:
	default:
		return nil // a socket or a device, which a layer of ours has not
	}
	if !slices.Contains(l.undated, name) {
		h.ModTime = time.Unix(max(st.Mtim.Sec, 0), 0)
	}
	id := inode{st.Dev, st.Ino}
	if first, ok := l.names[id]; ok {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return l.out.WriteHeader(h)
	}
	if st.Nlink > 1 {
		l.names[id] = name
	}
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	return l.file(h, name)
}

func (l *layerWriter) file(h *tar.Header, name string) error {
	f, err := l.root.OpenFile(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := describeAttributes(h, f); err != nil {
		return err
	}
	if err := l.out.WriteHeader(h); err != nil {
		return err
	}
	// Without the writer's ReadFrom, which would not use the buffer.
	n, err := io.CopyBuffer(struct{ io.Writer }{l.out}, struct{ io.Reader }{io.LimitReader(f, h.Size)}, l.buf)
	if err == nil && n != h.Size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// header writes the header of a directory with its attributes.
func (l *layerWriter) header(h *tar.Header, name string, how int) error {
	f, err := l.root.OpenFile(name, unix.O_RDONLY|unix.O_NOFOLLOW|how, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := describeAttributes(h, f); err != nil {
		return err
	}
	return l.out.WriteHeader(h)
}

// describeAttributes puts the attributes that layers keep into a header.
func describeAttributes(h *tar.Header, f *os.File) error {
	list := make([]byte, maxXattrBytes)
	n, err := unix.Flistxattr(int(f.Fd()), list)
	if errors.Is(err, unix.EOPNOTSUPP) || err == nil && n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, maxXattrBytes)
	for _, raw := range bytes.Split(bytes.TrimSuffix(list[:n], []byte{0}), []byte{0}) {
		name := string(raw)
		if name != capability && (!strings.HasPrefix(name, userXattr) || strings.HasPrefix(name, overlayXattr)) || strings.ContainsAny(name, "=") {
			continue
		}
		n, err := unix.Fgetxattr(int(f.Fd()), name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return err
		}
		data := value[:n]
		if name == capability {
			if data = capabilities(data); data == nil {
				continue
			}
		}
		if h.PAXRecords == nil {
			h.PAXRecords = make(map[string]string)
		}
		h.PAXRecords[xattrRecord+name] = string(data)
	}
	return nil
}
