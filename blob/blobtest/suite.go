// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package blobtest is the suite that every [blob.Store] passes.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/blob"
	"sandpit.dev/fault"
)

// Run runs the suite on empty stores that open makes.
func Run(t *testing.T, open func(*testing.T) blob.Store) {
	put := func(t *testing.T, s blob.Store, name string, data []byte) {
		t.Helper()
		if err := s.Put(t.Context(), name, bytes.NewReader(data)); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	missing := func(t *testing.T, s blob.Store, name string) {
		t.Helper()
		if _, err := read(t.Context(), s, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("reading %s: %v, want %s", name, err, fault.NotFound)
		}
	}
	t.Run("WhatIsReadEqualsWhatWasPut", func(t *testing.T) {
		s := open(t)
		for _, size := range []int{0, 1, 5<<20 + 1, 33<<20 + 7} { // the last are of several parts
			want := noise(size)
			put(t, s, "one", want)
			if got, err := read(t.Context(), s, "one"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: %d came back, the same: %v; %v", size, len(got), bytes.Equal(got, want), err)
			}
		}
		put(t, s, "two", []byte("2"))
		put(t, s, "one", []byte("1"))
		if got, err := read(t.Context(), s, "two"); err != nil || string(got) != "2" {
			t.Errorf("beside another: %q, %v", got, err)
		}
	})
	t.Run("WhatIsNotThereIsNotFound", func(t *testing.T) {
		s := open(t)
		missing(t, s, "nothing")
		put(t, s, "other", nil)
		missing(t, s, "nothing")
	})
	t.Run("WhatIsRemovedIsGoneAndTwiceIsFine", func(t *testing.T) {
		s := open(t)
		if err := s.Remove(t.Context(), "one"); err != nil {
			t.Errorf("of an empty store: %v", err)
		}
		put(t, s, "one", noise(100))
		put(t, s, "two", noise(100))
		for range 2 {
			if err := s.Remove(t.Context(), "one"); err != nil {
				t.Errorf("Remove: %v", err)
			}
		}
		missing(t, s, "one")
		if got, err := read(t.Context(), s, "two"); err != nil || len(got) != 100 {
			t.Errorf("the other one: %d bytes, %v", len(got), err)
		}
	})
	t.Run("APutThatFailsIsNotSeen", func(t *testing.T) {
		s := open(t)
		broken := errors.New("the source broke")
		for _, size := range []int{10, 20 << 20} {
			r := io.MultiReader(bytes.NewReader(noise(size)), &failing{broken})
			if err := s.Put(t.Context(), "one", r); !errors.Is(err, broken) {
				t.Errorf("after %d bytes: %v, want the source's error", size, err)
			}
			missing(t, s, "one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(bytes.NewReader(noise(10)), canceling(cancel), endless{})
		if err := s.Put(ctx, "one", r); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		missing(t, s, "one")
		if err := s.Remove(t.Context(), "one"); err != nil {
			t.Error(err)
		}
	})
	t.Run("WhatItHasIsListed", func(t *testing.T) {
		s := open(t)
		l := s.(blob.Lister)
		var want []string
		list := func() (all []string) {
			t.Helper()
			if err := l.List(t.Context(), func(name string) error { all = append(all, name); return nil }); err != nil {
				t.Error(err)
			}
			slices.Sort(all)
			return slices.Compact(all)
		}
		if got := list(); len(got) != 0 {
			t.Errorf("an empty store lists %q", got)
		}
		for n := range 25 {
			want = append(want, fmt.Sprintf("blob%02d", n))
			put(t, s, want[n], []byte{byte(n)})
		}
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("it lists %q", got)
		}
		broken := errors.New("no more")
		if err := l.List(t.Context(), func(string) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("ended by an error: %v", err)
		}
		if err := l.List(t.Context(), func(name string) error { return s.Remove(t.Context(), name) }); err != nil {
			t.Error(err)
		}
		if got := list(); len(got) != 0 {
			t.Errorf("after all were removed as they were listed it has %q", got)
		}
	})
	t.Run("NoNameLeadsOut", func(t *testing.T) {
		s := open(t)
		for _, name := range []string{"", ".", "..", "../up", "a/b", "/etc/passwd", "A", "a b", "a\x00", "a?x=1", "a%2fb", strings.Repeat("a", 65)} {
			_, err := s.Open(t.Context(), name)
			for n, err := range []error{err, s.Put(t.Context(), name, strings.NewReader("x")), s.Remove(t.Context(), name)} {
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%q, call %d: %v, want %s", name, n, err, fault.Invalid)
				}
			}
		}
	})
	t.Run("ItSaysWhereItIs", func(t *testing.T) {
		if s := open(t); s.Place() == "" {
			t.Error("it has no place")
		}
	})
}

func read(ctx context.Context, s blob.Store, name string) (data []byte, err error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// noise returns bytes of which none are alike, the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) {
	return 0, f.err
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// canceling is an empty reader that calls the function when it is read.
type canceling func()

func (c canceling) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}
