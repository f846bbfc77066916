// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"path"
	"time"

	"sandpit.dev/fault"
)

// epoch is the time of all files that are written: of the same skill the same bytes come out.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Zip returns the skill as a ZIP archive, in a directory of its name.
func (p *Package) Zip() ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range p.Files {
		f := &p.Files[i]
		h := &zip.FileHeader{Name: p.Name + "/" + f.Path, Method: zip.Deflate, Modified: epoch}
		h.SetMode(f.mode())
		fw, err := w.CreateHeader(h)
		if err == nil {
			_, err = fw.Write(f.Data)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the skill cannot be packed")
		}
	}
	if err := w.Close(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the skill cannot be packed")
	}
	return b.Bytes(), nil
}

// Tar writes the files of the skill, and more, as a tar archive below dir, a relative path.
func (p *Package) Tar(w io.Writer, dir string, more ...Content) error {
	t := tar.NewWriter(w)
	for _, files := range [][]Content{p.Files, more} {
		for i := range files {
			f := &files[i]
			h := &tar.Header{
				Typeflag: tar.TypeReg, Name: path.Join(dir, f.Path), Size: int64(len(f.Data)), Mode: int64(f.mode()), ModTime: epoch, Format: tar.FormatPAX,
			}
			if err := t.WriteHeader(h); err != nil {
				return err
			}
			if _, err := t.Write(f.Data); err != nil {
				return err
			}
		}
	}
	return t.Close()
}
