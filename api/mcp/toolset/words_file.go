// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"sandpit.dev/sandbox"
)

// MostEntries is how many entries of a directory a profile's tool lists.
const MostEntries = 1000

// WriteFile writes a file, unless an argument is wrong.
func (w *Words) WriteFile(ctx context.Context, c *Call, path, content string) (sandbox.FileInfo, error) {
	if len(content) > MaxWrite {
		c.Args.Add("content", "has %d bytes, more than %d; write it in parts with %s", len(content), MaxWrite, w.Shell)
	}
	if err := c.Args.Err(); err != nil {
		return sandbox.FileInfo{}, err
	}
	info, _, err := c.Files.WriteFile(ctx, c.Caller, c.Ref, path, strings.NewReader(content), sandbox.WriteFileOptions{
		MakeParents: true, Size: int64(len(content)),
	})
	if err != nil {
		return info, w.PathError(ctx, c, path, err)
	}
	return info, nil
}

// FileHead is the beginning of a file.
type FileHead struct {
	Info   sandbox.FileInfo
	Data   []byte // without a character that its end would cut
	Binary bool
}

// ReadFile reads the first bytes of a file, at most most.
func (w *Words) ReadFile(ctx context.Context, c *Call, path string, most int) (FileHead, error) {
	info, body, err := c.Files.ReadFile(ctx, c.Caller, c.Ref, path, sandbox.ReadFileOptions{})
	if err != nil {
		return FileHead{}, w.PathError(ctx, c, path, err)
	}
	defer body.Close()
	if err := c.Reserve(ctx, min(info.Size, int64(most))); err != nil {
		return FileHead{}, err
	}
	data, err := io.ReadAll(io.LimitReader(body, int64(most)))
	if err != nil {
		return FileHead{}, err
	}
	whole := len(data) < most
	f := FileHead{Info: info, Data: data, Binary: IsBinary(data, !whole)}
	for cut := 1; !whole && !f.Binary && cut < utf8.UTFMax && cut <= len(data); cut++ {
		if last := data[len(data)-cut:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				f.Data = data[:len(data)-cut]
			}
			break
		}
	}
	return f, nil
}

// ListFiles lists the directory of the argument path, unless an argument is wrong.
func (w *Words) ListFiles(ctx context.Context, c *Call) ([]sandbox.FileInfo, bool, error) {
	dir := c.Args.Text("path")
	if dir == "" {
		dir = "."
	}
	if err := c.Args.Err(); err != nil {
		return nil, false, err
	}
	files, more, err := c.Files.ListFiles(ctx, c.Caller, c.Ref, dir, sandbox.ListFilesOptions{Limit: MostEntries})
	if err != nil {
		return nil, false, w.PathError(ctx, c, dir, err)
	}
	return files, more, nil
}

// OnlyRegion is where all sandboxes are.
const OnlyRegion = "local"
