// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Transfer is files on their way into a sandbox and out of it, whole and with their
// content checked. A megabyte is 1,000,000 bytes.
type Transfer struct {
	Files []Moved `json:"files"`
	// Listing is a list of 100,000 files of one directory, and Details the same with all about each, or as much of it as a
	// list may have; nil: not measured.
	Listing *Figures `json:"listing,omitempty"`
	Details *Figures `json:"details,omitempty"`
}

// Moved is one kind of content, there and back.
type Moved struct {
	What  string   `json:"what"`
	Bytes int64    `json:"bytes"`
	Up    *Figures `json:"upload"`
	Down  *Figures `json:"download"`
	// The speeds are of the median run, megabytes a second.
	UpSpeed   *float64 `json:"upload_mb_per_second"`
	DownSpeed *float64 `json:"download_mb_per_second"`
}

const (
	smallFiles = 1000
	smallSize  = 4 << 10 // of each of them
)

// mover is one kind of content.
type mover struct {
	what     string
	bytes    int64
	times    int
	up, down func() error
}

// transfer measures each kind, up and down in turn.
func (o *ours) transfer(ctx context.Context, n int) (*Transfer, error) {
	t := new(Transfer)
	err := o.with(ctx, v1.CreateSandbox{DiskMB: new(4 << 10), MemoryMB: new(1 << 10)}, func(ref string) error {
		for _, m := range o.movers(ctx, ref, n) {
			var up, down series
			for i := range m.times + 1 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				began := time.Now()
				err := m.up()
				there := time.Now()
				if err == nil {
					err = m.down()
				}
				if err != nil {
					return fmt.Errorf("%s: %w", m.what, err)
				}
				if i > 0 { // the first one is a warm-up
					up.add(there.Sub(began), nil)
					down.add(time.Since(there), nil)
				}
			}
			moved := Moved{What: m.what, Bytes: m.bytes, Up: up.figures(), Down: down.figures()}
			moved.UpSpeed, moved.DownSpeed = speed(m.bytes, moved.Up), speed(m.bytes, moved.Down)
			t.Files = append(t.Files, moved)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// speed is that of the median run, in megabytes a second.
func speed(bytes int64, f *Figures) *float64 {
	if f == nil || f.P50 == 0 {
		return nil
	}
	return new(hundredths(float64(bytes) / 1e6 / (f.P50 / 1e3)))
}

// movers are the kinds that are measured: single files, and a tree of many small ones as
// one archive, which a command inside unpacks and packs, and file by file.
func (o *ours) movers(ctx context.Context, ref string, n int) []mover {
	whole := func(size, times int) mover {
		content := noise(size)
		sum := crc32.ChecksumIEEE(content)
		name := fmt.Sprintf("file-%d", size)
		return mover{fmt.Sprintf("a file of %d MiB", size>>20), int64(size), times,
			func() error { return o.put(ctx, ref, name, content) },
			func() error { return o.get(ctx, ref, name, len(content), sum) }}
	}
	tree := noise(smallFiles * smallSize)
	each := func(i int) (string, []byte) {
		return fmt.Sprintf("tree/d%d/f%d", i%20, i), tree[i*smallSize : (i+1)*smallSize]
	}
	what := fmt.Sprintf("%d files of %d KiB", smallFiles, smallSize>>10)
	archived := sync.OnceValues(func() ([]byte, error) { return packed(smallFiles, each) }) // the first run is a warm-up
	few := max(3, n/40)
	return []mover{
		whole(1<<20, n),
		whole(64<<20, max(3, n/20)),
		{what + " as a tar archive, unpacked and packed inside", int64(len(tree)), few,
			func() error {
				archive, err := archived()
				if err != nil {
					return err
				}
				if err := o.put(ctx, ref, "up.tar", archive); err != nil {
					return err
				}
				return o.exec(ctx, ref, v1.Exec{Command: new("rm -rf tree && tar -xf up.tar")})
			},
			func() error {
				if err := o.exec(ctx, ref, v1.Exec{Command: new("tar -cf down.tar tree")}); err != nil {
					return err
				}
				return o.getPacked(ctx, ref, "down.tar", smallFiles, each)
			}},
		{what + " one by one", int64(len(tree)), few,
			func() error {
				return everyOne(smallFiles, each, func(name string, b []byte) error { return o.put(ctx, ref, name, b) })
			},
			func() error {
				return everyOne(smallFiles, each, func(name string, b []byte) error {
					return o.get(ctx, ref, name, len(b), crc32.ChecksumIEEE(b))
				})
			}},
	}
}

func everyOne(n int, file func(i int) (string, []byte), fn func(name string, content []byte) error) error {
	for i := range n {
		if err := fn(file(i)); err != nil {
			return err
		}
	}
	return nil
}

// noise is bytes that nothing on the way can make smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

func (o *ours) put(ctx context.Context, ref, name string, content []byte) error {
	return o.client.WriteFile(ctx, ref, name, bytes.NewReader(content), client.WriteOptions{Size: int64(len(content))})
}

// get reads a file that has to hold so many bytes with that checksum.
func (o *ours) get(ctx context.Context, ref, name string, size int, sum uint32) error {
	f, err := o.client.ReadFile(ctx, ref, name, client.ReadOptions{})
	if err != nil {
		return err
	}
	got := crc32.NewIEEE()
	n, err := io.Copy(got, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n != int64(size) || got.Sum32() != sum {
		return fmt.Errorf("%s came back with %d bytes of %d, or others", name, n, size)
	}
	return nil
}

// packed is a tar archive of n files.
func packed(n int, file func(i int) (string, []byte)) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range n {
		name, content := file(i)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// getPacked reads an archive that has to hold n files, in any order.
func (o *ours) getPacked(ctx context.Context, ref, name string, n int, file func(i int) (string, []byte)) error {
	f, err := o.client.ReadFile(ctx, ref, name, client.ReadOptions{})
	if err != nil {
		return err
	}
	return errors.Join(unpacked(f, n, file), f.Close())
}

// unpacked reads an archive to its end and holds what is in it.
func unpacked(r io.Reader, n int, file func(i int) (string, []byte)) error {
	want := make(map[string][]byte, n)
	for i := range n {
		name, content := file(i)
		want[name] = content
	}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, ok := want[h.Name]
		if !ok || h.Size != int64(len(content)) {
			return fmt.Errorf("the archive has %q with %d bytes, which nobody put there", h.Name, h.Size)
		}
		got := make([]byte, len(content))
		if _, err := io.ReadFull(t, got); err != nil {
			return err
		}
		if !bytes.Equal(got, content) {
			return fmt.Errorf("%q came back with other bytes", h.Name)
		}
		delete(want, h.Name)
	}
	if len(want) > 0 {
		return fmt.Errorf("of %d files %d did not come back", n, len(want))
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

func (t *Transfer) rows(row func(name string, f *Figures)) {
	if t == nil {
		return
	}
	for _, m := range t.Files {
		row("upload "+m.What, m.Up)
		row("download it", m.Down)
	}
	if t.Listing != nil {
		row("list 100,000 files", t.Listing)
		row("with all about each", t.Details)
	}
}

func (t *Transfer) lines(say func(format string, args ...any)) {
	if t == nil {
		return
	}
	for _, m := range t.Files {
		if m.UpSpeed != nil && m.DownSpeed != nil {
			say("%s: upload %.0f MB/s, download %.0f MB/s (of the median run)", m.What, *m.UpSpeed, *m.DownSpeed)
		}
	}
}
