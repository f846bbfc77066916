// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"sandpit.dev/blob"
	"sandpit.dev/blob/chunks"
	"sandpit.dev/blob/dir"
	"sandpit.dev/blob/s3"
	"sandpit.dev/fault"
)

// noise returns bytes of which none are alike, the same each time.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func open(t *testing.T, b blob.Store) *chunks.Store {
	t.Helper()
	s, err := chunks.New(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t *testing.T, s *chunks.Store, parts ...[]byte) chunks.Index {
	t.Helper()
	x, err := s.Write(t.Context(), func(w io.Writer) error {
		for _, p := range parts {
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return x
}

func read(t *testing.T, s *chunks.Store, x chunks.Index) ([]byte, error) {
	t.Helper()
	r := s.Open(t.Context(), x)
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func want(t *testing.T, s *chunks.Store, x chunks.Index, data ...[]byte) {
	t.Helper()
	if got, err := read(t, s, x); err != nil || !bytes.Equal(got, slices.Concat(data...)) {
		t.Errorf("%d bytes were read, %v", len(got), err)
	}
}

// list is what the store of chunks has.
func list(t *testing.T, b blob.Store) (all []string) {
	t.Helper()
	if err := b.(blob.Lister).List(t.Context(), func(name string) error { all = append(all, name); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// stores are of each kind.
func stores(t *testing.T, run func(t *testing.T, b blob.Store)) {
	t.Run("Directory", func(t *testing.T) { run(t, dir.New(t.TempDir())) })
	t.Run("Bucket", func(t *testing.T) {
		backend := s3mem.New()
		if err := backend.CreateBucket("chunks"); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		b, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "chunks", Prefix: "one/", PathStyle: true, AccessKey: "key", SecretKey: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		run(t, b)
	})
}

func TestWhatIsReadEqualsWhatWasWritten(t *testing.T) {
	stores(t, func(t *testing.T, b blob.Store) {
		s := open(t, b)
		for _, size := range []int{0, 1, 128 << 10, 2<<20 - 1, 2 << 20, 4<<20 + 1, 9 << 20} {
			data := noise(1, size)
			x := write(t, s, data)
			want(t, s, x, data)
			again, err := chunks.Parse(x.Append(nil))
			if err != nil || !slices.Equal(again, x) {
				t.Errorf("%d bytes: the index is another after it was kept: %v", size, err)
			}
		}
		x := write(t, s, make([]byte, 20<<20))
		want(t, s, x, make([]byte, 20<<20))
		if n := x.StoredBytes(); n > 10_000 {
			t.Errorf("20 MiB of zeros take %d bytes", n)
		}
	})
}

func TestWhatTwoHaveInCommonIsKeptOnce(t *testing.T) {
	stores(t, func(t *testing.T, b blob.Store) {
		s := open(t, b)
		one := noise(1, 16<<20)
		x := write(t, s, one)
		n := len(list(t, b))
		if n < 20 || n > 80 {
			t.Errorf("16 MiB are %d chunks", n)
		}
		y := write(t, s, one)
		if got := len(list(t, b)); got != n || !slices.Equal(x, y) {
			t.Errorf("the same again: %d chunks, and %d before", got, n)
		}
		// Something is put before, into and behind it, of lengths that move all that follows.
		z := write(t, s, noise(2, 777), one[:5<<20], noise(3, 12345), one[5<<20:], noise(4, 99))
		if got := len(list(t, b)); got > n+8 {
			t.Errorf("with three changes: %d chunks, and %d before", got, n)
		}
		if err := s.Drop(t.Context(), x); err != nil {
			t.Error(err)
		}
		want(t, s, y, one)
		if err := s.Drop(t.Context(), y); err != nil {
			t.Error(err)
		}
		want(t, s, z, noise(2, 777), one[:5<<20], noise(3, 12345), one[5<<20:], noise(4, 99))
		if err := s.Share(t.Context(), y); !fault.Is(err, fault.NotFound) {
			t.Errorf("Share of one of which parts are gone: %v", err)
		}
		if err := s.Share(t.Context(), z); err != nil {
			t.Errorf("Share: %v", err)
		}
		for range 2 {
			if got := len(list(t, b)); got == 0 {
				t.Error("it is gone too early")
			}
			if err := s.Drop(t.Context(), z); err != nil {
				t.Error(err)
			}
		}
		if got := list(t, b); len(got) != 0 {
			t.Errorf("%d chunks that nobody has are left", len(got))
		}
	})
}

func TestAStreamThatBreaksLeavesNothing(t *testing.T) {
	b := dir.New(t.TempDir())
	s := open(t, b)
	kept := write(t, s, noise(1, 4<<20))
	n := len(list(t, b))
	broken := errors.New("the source broke")
	if _, err := s.Write(t.Context(), func(w io.Writer) error {
		_, err := w.Write(slices.Concat(noise(1, 4<<20), noise(2, 9<<20)))
		return errors.Join(err, broken)
	}); !errors.Is(err, broken) || errors.Is(err, chunks.ErrLeft) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Write(ctx, func(w io.Writer) error {
		_, err := w.Write(noise(3, 9<<20))
		cancel()
		for err == nil {
			_, err = w.Write(noise(4, 4<<20))
		}
		return err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if got := len(list(t, b)); got != n {
		t.Errorf("%d chunks are there, and %d before", got, n)
	}
	want(t, s, kept, noise(1, 4<<20))
}

// A process that is killed leaves chunks that no index has, and parts of files.
func TestWhatIsLeftIsSwept(t *testing.T) {
	stores(t, func(t *testing.T, b blob.Store) {
		before := open(t, b)
		kept := write(t, before, noise(1, 4<<20))
		n := len(list(t, b))
		write(t, before, noise(1, 4<<20), noise(2, 4<<20))
		if err := b.Put(t.Context(), "another", strings.NewReader("mine")); err != nil {
			t.Fatal(err)
		}
		s := open(t, b)
		s.Hold(kept)
		var beside sync.WaitGroup
		var later chunks.Index
		beside.Go(func() { later = write(t, s, noise(2, 3<<20), noise(5, 1<<20)) })
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		beside.Wait()
		want(t, s, later, noise(2, 3<<20), noise(5, 1<<20))
		if err := s.Drop(t.Context(), later); err != nil {
			t.Error(err)
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, s, kept, noise(1, 4<<20))
		if got := list(t, b); len(got) != n+1 || !slices.Contains(got, "another") {
			t.Errorf("%d blobs are left, and %d are kept", len(got), n)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	b := dir.New(t.TempDir())
	s := open(t, b)
	shared := noise(1, 3<<20)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			own := noise(byte(10+n), 1<<20)
			for range 4 {
				x := write(t, s, shared, own)
				want(t, s, x, shared, own)
				if err := s.Drop(t.Context(), x); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := list(t, b); len(got) != 0 {
		t.Errorf("%d chunks are left", len(got))
	}
}

func TestWhatIsDamagedIsTold(t *testing.T) {
	place := t.TempDir()
	b := dir.New(place)
	s := open(t, b)
	data := noise(1, 3<<20)
	x := write(t, s, data)
	file := filepath.Join(place, list(t, b)[0]+".sandpit")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(place, list(t, b)[1]+".sandpit"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for what, bad := range map[string][]byte{"a bit": flipped, "half of it": good[:len(good)/2], "another chunk": other, "nothing": nil, "more": append(bytes.Clone(good), good...)} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, s, x); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "checksum") || len(got) >= len(data) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, s, x); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "lost") {
		t.Errorf("gone: %v", err)
	}
	kept := x.Append(nil)
	for what, bad := range map[string][]byte{"short": kept[:len(kept)-1], "without an end": kept[:len(kept)-40], "empty": nil, "flipped": append(bytes.Clone(kept[:30]), append([]byte{kept[30] ^ 1}, kept[31:]...)...), "long": append(bytes.Clone(kept), 0)} {
		if _, err := chunks.Parse(bad); !fault.Is(err, fault.Internal) {
			t.Errorf("an index that is %s: %v", what, err)
		}
	}
}

func TestAReaderThatIsClosedEarlyLeavesNothingRunning(t *testing.T) {
	s := open(t, dir.New(t.TempDir()))
	r := s.Open(t.Context(), write(t, s, noise(1, 9<<20)))
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("it can be read once it is closed")
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, data := range map[string][]byte{"Noise": noise(1, 64<<20), "Zeros": make([]byte, 64<<20)} {
		for _, again := range []bool{false, true} {
			b.Run(name+map[bool]string{false: "", true: "Again"}[again], func(b *testing.B) {
				s, err := chunks.New(dir.New(b.TempDir()))
				if err != nil {
					b.Fatal(err)
				}
				put := func() chunks.Index {
					x, err := s.Write(b.Context(), func(w io.Writer) error { _, err := w.Write(data); return err })
					if err != nil {
						b.Fatal(err)
					}
					return x
				}
				if again {
					put()
				}
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if x := put(); !again {
						if err := s.Drop(b.Context(), x); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// lost is a store that keeps what it is given, and says that it did not.
type lost struct {
	blob.Store
	after atomic.Int32
}

func (l *lost) Put(ctx context.Context, name string, r io.Reader) error {
	if err := l.Store.Put(ctx, name, r); err != nil || l.after.Add(-1) >= 0 {
		return err
	}
	return errors.New("the answer was lost")
}

func TestWhatAStoreKeptWithoutSayingSoIsRemoved(t *testing.T) {
	d := dir.New(t.TempDir())
	b := &lost{Store: d}
	b.after.Store(2)
	s := open(t, b)
	if _, err := s.Write(t.Context(), func(w io.Writer) error { _, err := w.Write(noise(1, 8<<20)); return err }); err == nil || errors.Is(err, chunks.ErrLeft) {
		t.Errorf("Write: %v", err)
	}
	if err := d.List(t.Context(), func(name string) error { t.Errorf("it keeps %s", name); return nil }); err != nil {
		t.Error(err)
	}
}
