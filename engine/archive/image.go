// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// PAX records of an entry that has no content, since the image has a file with the same: its path
// there, its digest and its size. The drivers' own records have other names (see package layer).
const (
	imageRecord  = "SANDPIT.image"
	digestRecord = "SANDPIT.image.sha256"
	sizeRecord   = "SANDPIT.image.size"
	sparseRecord = "SANDPIT.sparse" // a driver's: what the entry holds is not its content
)

const (
	// leastShared is the size of the smallest file that is looked for in the image: a name
	// takes room, too.
	leastShared = 4 << 10
	// chunk is how much of a file is compared at a time; what alike files begin with differs in it.
	chunk = 64 << 10
	// mostAlike bounds how many of the image's files of one size are compared.
	mostAlike = 16
)

// image finds files of an image by their content.
type image struct {
	root   *os.Root
	bySize map[int64][]string // nil: not looked for yet
	buf    []byte
	other  []byte
}

// openImage opens the directory of an image's files; "": one without any.
func openImage(dir string) (*image, error) {
	i := &image{buf: make([]byte, chunk), other: make([]byte, chunk)}
	if dir == "" {
		return i, nil
	}
	var err error
	if i.root, err = os.OpenRoot(dir); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the image's root cannot be opened")
	}
	return i, nil
}

func (i *image) close() {
	if i.root != nil {
		_ = i.root.Close()
	}
}

// open opens a plain file of the image, of so many bytes, through no link.
func (i *image) open(path string, size int64) (*os.File, error) {
	if i.root == nil {
		return nil, errors.New("there is no image")
	}
	f, err := i.root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || size >= 0 && info.Size() != size) {
		err = errors.New("it is another file")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// index notes the image's files by their sizes.
func (i *image) index(ctx context.Context) error {
	if i.bySize != nil || i.root == nil {
		return nil
	}
	i.bySize = make(map[int64][]string)
	return fs.WalkDir(i.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // what cannot be read is packed as it is
		}
		info, err := d.Info()
		if err != nil || info.Size() < leastShared || len(i.bySize[info.Size()]) >= mostAlike {
			return nil
		}
		i.bySize[info.Size()] = append(i.bySize[info.Size()], path)
		return nil
	})
}

// replace copies a layer, with names for files that the image has.
func (i *image) replace(ctx context.Context, in *tar.Reader, out *tar.Writer) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			return out.Close()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		h.Format = tar.FormatPAX
		if _, sparse := h.PAXRecords[sparseRecord]; h.Typeflag == tar.TypeReg && h.Size >= leastShared && !sparse {
			err = i.file(ctx, h, in, out)
		} else {
			err = copyEntry(h, in, out)
		}
		if err != nil {
			return err
		}
	}
}

func copyEntry(h *tar.Header, in io.Reader, out *tar.Writer) error {
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// file copies a file, or writes its name in the image.
func (i *image) file(ctx context.Context, h *tar.Header, in io.Reader, out *tar.Writer) error {
	if err := i.index(ctx); err != nil {
		return err
	}
	head := i.buf[:min(h.Size, chunk)]
	if len(i.bySize[h.Size]) == 0 {
		return copyEntry(h, in, out)
	}
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	for _, path := range i.bySize[h.Size] {
		f, err := i.open(path, h.Size)
		if err != nil {
			continue
		}
		if n, err := io.ReadFull(f, i.other[:len(head)]); err == nil && bytes.Equal(i.other[:n], head) {
			err := i.compare(ctx, h, in, out, path, f)
			return errors.Join(err, f.Close())
		}
		_ = f.Close()
	}
	return copyEntry(h, io.MultiReader(bytes.NewReader(head), in), out)
}

// compare goes on with a file whose first chunk, in buf, is that of the image's file f too. Where they
// differ later, what was alike comes from f.
func (i *image) compare(ctx context.Context, h *tar.Header, in io.Reader, out *tar.Writer, path string, f *os.File) error {
	sum := sha256.New()
	alike := min(h.Size, chunk)
	sum.Write(i.buf[:alike])
	for alike < h.Size {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(h.Size-alike, chunk)
		if _, err := io.ReadFull(in, i.buf[:n]); err != nil {
			return err
		}
		if _, err := io.ReadFull(f, i.other[:n]); err != nil || !bytes.Equal(i.buf[:n], i.other[:n]) {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return err
			}
			return copyEntry(h, io.MultiReader(io.LimitReader(f, alike), bytes.NewReader(i.buf[:n]), in), out)
		}
		sum.Write(i.buf[:n])
		alike += n
	}
	named := *h
	named.PAXRecords = map[string]string{imageRecord: path, digestRecord: digestOf(sum), sizeRecord: fmt.Sprint(h.Size)}
	for k, v := range h.PAXRecords {
		named.PAXRecords[k] = v
	}
	named.Size = 0
	return out.WriteHeader(&named)
}

// restore copies a layer that replace wrote, with the content of the image's files, and leaves out's
// end to the caller.
func (i *image) restore(ctx context.Context, in *tar.Reader, out *tar.Writer) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return notPacked(err)
		}
		h.Format = tar.FormatPAX
		path, named := h.PAXRecords[imageRecord]
		if !named {
			if err := copyEntry(h, in, out); err != nil {
				return notPacked(err)
			}
			continue
		}
		if err := i.content(h, path, out); err != nil {
			return err
		}
	}
}

// content writes an entry whose content is a file of the image.
func (i *image) content(h *tar.Header, path string, out *tar.Writer) error {
	want := h.PAXRecords[digestRecord]
	f, err := i.open(path, -1)
	if err != nil {
		return notInImage(path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || fmt.Sprint(info.Size()) != h.PAXRecords[sizeRecord] {
		return notInImage(path, err)
	}
	for _, k := range []string{imageRecord, digestRecord, sizeRecord} {
		delete(h.PAXRecords, k)
	}
	h.Size = info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(out, sum), f, h.Size); err != nil {
		return err
	}
	if digestOf(sum) != want {
		return notInImage(path, nil)
	}
	return nil
}

func notInImage(path string, err error) error {
	return fault.Wrap(fault.State, err, "the archive needs the file %.200q of the image as it was, and the image has another", path).
		WithRemedy("put the server's images back; another build of one does not fit")
}

func notPacked(err error) error {
	var f *fault.Error
	if errors.As(err, &f) || errors.Is(err, errStopped) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.State, err, "the archive cannot be read: it is broken")
}
