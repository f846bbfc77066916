// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPartThatFailsIsMissingAndTheOthersAreNot(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran []string
	one := func(name string, do func() error) part {
		return part{name, true, func(context.Context, *session) error {
			ran = append(ran, name)
			return do()
		}}
	}
	broken := errors.New("it broke")
	s := &session{o: Options{Parts: []string{"a", "b", "c", "d", "e"}}, out: &Report{Missing: map[string]string{}}}
	err := s.runParts(ctx, []part{
		one("a", func() error { return nil }),
		one("b", func() error { return broken }),
		one("not asked for", func() error { return nil }),
		one("c", func() error { return nil }),
		one("d", func() error { cancel(); return nil }),
		one("e", func() error { return nil }),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run gives %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, ran); diff != "" {
		t.Errorf("these ran:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, s.out.Parts); diff != "" {
		t.Errorf("these are told as measured:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "it broke"}, s.out.Missing); diff != "" || !errors.Is(s.broken, broken) {
		t.Errorf("the failure is %v:\n%s", s.broken, diff)
	}
}
