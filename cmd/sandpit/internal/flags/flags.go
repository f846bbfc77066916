// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package flags has the kinds of values that flags take: lengths of time, sizes, variables, mounts, words.
// It knows no command.
package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Given is nil for a flag that was not given, so that the server's default holds.
func Given[T any](flags *pflag.FlagSet, name string, value T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return &value
}

// KeyIsName has --key mean --name: it is the same thing, which the API calls a key.
func KeyIsName(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "key" {
			name = "name"
		}
		return pflag.NormalizedName(name)
	})
}

// choice is a flag that is one of a few words.
type choice struct {
	words []string
	word  string
}

func (c *choice) Type() string { return "WORD" }

func (c *choice) String() string { return c.word }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(c.words, ", "))
	}
	c.word = s
	return nil
}

func (c *choice) Value() *string {
	if c.word == "" {
		return nil
	}
	return &c.word
}
