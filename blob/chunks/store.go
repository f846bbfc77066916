// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"sandpit.dev/blob"
	"sandpit.dev/fault"
)

const (
	// atOnce is how many chunks are written, read or removed at a time by one stream.
	atOnce = 4
	// parts is how many locks there are: a chunk is written and removed under one.
	parts = 64
)

// Store keeps chunks. It is safe for concurrent use.
type Store struct {
	blobs blob.Store
	pack  *zstd.Encoder
	open  *zstd.Decoder
	parts [parts]part
}

// part is of the chunks whose sums begin alike. mu is held while one is written or removed, so that each that has uses is there.
type part struct {
	mu   sync.Mutex
	uses map[Sum]use
}

type use struct {
	n      int
	stored uint32
}

// New returns a store of chunks in blobs, which nobody else writes to. Before anything else each [Index] that is kept is given to Hold.
func New(blobs blob.Store) (*Store, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(atOnce))
	if err != nil {
		return nil, err
	}
	open, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(atOnce), zstd.WithDecoderMaxMemory(maxSize+1))
	if err != nil {
		return nil, err
	}
	s := &Store{blobs: blobs, pack: pack, open: open}
	for n := range s.parts {
		s.parts[n].uses = make(map[Sum]use)
	}
	return s, nil
}

// Close ends what the store has of its own. No call is under way.
func (s *Store) Close() error {
	s.open.Close()
	return s.pack.Close()
}

// Place names the store for people.
func (s *Store) Place() string { return s.blobs.Place() }

func (s *Store) part(sum Sum) *part { return &s.parts[sum[0]%parts] }

// Hold counts the chunks of an index that is kept.
func (s *Store) Hold(x Index) {
	for _, c := range x {
		p := s.part(c.Sum)
		p.mu.Lock()
		p.uses[c.Sum] = use{p.uses[c.Sum].n + 1, c.Stored}
		p.mu.Unlock()
	}
}

// Share is Hold of another copy of an index that is kept, but where that is dropped meanwhile it is fault.NotFound.
func (s *Store) Share(ctx context.Context, x Index) error {
	for n, c := range x {
		p := s.part(c.Sum)
		p.mu.Lock()
		u := p.uses[c.Sum]
		if u.n > 0 {
			p.uses[c.Sum] = use{u.n + 1, u.stored}
		}
		p.mu.Unlock()
		if u.n > 0 {
			continue
		}
		return errors.Join(fault.New(fault.NotFound, "it is being removed"), s.Drop(ctx, x[:n]))
	}
	return nil
}

// keep has a chunk be in the store, and counts it.
func (s *Store) keep(ctx context.Context, data []byte) (Chunk, error) {
	c := Chunk{Sum: sha256.Sum256(data), Size: uint32(len(data))} //nolint:gosec // at most maxSize
	p := s.part(c.Sum)
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.uses[c.Sum]
	if u.n == 0 {
		packed := s.pack.EncodeAll(data, make([]byte, 0, len(data)/2))
		if err := s.blobs.Put(ctx, c.Sum.name(), bytes.NewReader(packed)); err != nil {
			return Chunk{Sum: c.Sum}, err // which may have been stored
		}
		u.stored = uint32(len(packed)) //nolint:gosec // a little more than maxSize
	}
	c.Stored = u.stored
	p.uses[c.Sum] = use{u.n + 1, u.stored}
	return c, nil
}

// forget removes a chunk that may have been stored, unless an index has it.
func (s *Store) forget(ctx context.Context, sum Sum) error {
	p := s.part(sum)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uses[sum].n > 0 {
		return nil
	}
	return s.blobs.Remove(ctx, sum.name())
}

// Drop is the opposite of Hold: it removes the chunks that no index has any more. After an error some that nobody counts are left, which Sweep
// removes.
func (s *Store) Drop(ctx context.Context, x Index) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, c := range x {
		g.Go(func() error { return s.drop(ctx, c.Sum) })
	}
	return g.Wait()
}

func (s *Store) drop(ctx context.Context, sum Sum) error {
	p := s.part(sum)
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.uses[sum]
	if u.n > 1 {
		p.uses[sum] = use{u.n - 1, u.stored}
		return nil
	}
	delete(p.uses, sum)
	return s.blobs.Remove(ctx, sum.name())
}

// Sweep removes chunks that no index has: what was being written or removed when a process ended.
func (s *Store) Sweep(ctx context.Context) error {
	l, ok := s.blobs.(blob.Lister)
	if !ok {
		return errors.New("the store cannot list what it has")
	}
	return l.List(ctx, func(name string) error {
		b, err := hex.DecodeString(name)
		if err != nil || len(b) != sha256.Size {
			return nil // none of ours
		}
		sum := Sum(b)
		p := s.part(sum)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.uses[sum].n > 0 {
			return nil
		}
		return s.blobs.Remove(ctx, name)
	})
}
