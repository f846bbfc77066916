// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile/ignore"
)

// Dockerfile returns the text of the Dockerfile in the context, and takes out of it what its .dockerignore
// leaves out.
func (c *Context) Dockerfile(ctx context.Context, name string) ([]byte, error) {
	text, err := c.File(name, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.InvalidField("dockerfile", "%s is not in the build's context", quoted(name)).WithRemedy("name another one")
	}
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, ignore.Outside) {
		c.remove(name)
	}
	own, err := c.File(name+ignore.File, ignore.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		own, err = c.File(ignore.File, ignore.MaxBytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return text, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := ignore.Parse(own)
	if err != nil {
		return nil, err
	}
	kept := make(map[string]bool)
	for _, n := range c.names {
		if n == "." {
			continue
		}
		if ctx.Err() != nil { // there may be very many patterns
			return nil, context.Cause(ctx)
		}
		out, _, err := list.Match(n)
		if err != nil {
			return nil, err
		}
		if !out {
			for at := n; !kept[at]; {
				kept[at] = true
				i := strings.LastIndexByte(at, '/')
				if i < 0 {
					break
				}
				at = at[:i]
			}
		}
	}
	names := c.names[:0]
	for _, n := range c.names {
		if n == "." || kept[n] {
			names = append(names, n)
		} else {
			delete(c.entries, n)
		}
	}
	c.names = names
	return text, nil
}
