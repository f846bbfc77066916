// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"path"
	"unicode/utf8"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/lsp"
	"sandpit.dev/sandbox"
)

// Bounds of files that a server was told of.
const (
	MaxOpen = 200     // at once
	MaxFile = 2 << 20 // bytes
)

// document is a file that a server was told of.
type document struct {
	version int
	sum     [sha256.Size]byte // of its text
}

// places are where a file may be that a caller names: clients say relative paths both of the project, and of the directory that
// their other paths are relative to.
func (x *server) places(u *engine.Use, file string) []string {
	if path.IsAbs(file) {
		return []string{path.Clean(file)}
	}
	below, here := path.Join(x.key.project, file), u.Account().Absolute(file)
	if below == here {
		return []string{below}
	}
	return []string{below, here}
}

// take waits for the turn to tell of files. give gives it back.
func (x *server) take(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *server) give() { <-x.turn }

// tell has the server know what a file says now, and returns the file's URI.
func (x *server) tell(ctx context.Context, u *engine.Use, file string) (uri string, err error) {
	if err := x.take(ctx); err != nil {
		return "", err
	}
	defer x.give()
	var at string
	var text []byte
	for _, at = range x.places(u, file) {
		if text, err = read(ctx, u, at); !fault.Is(err, fault.NotFound) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return lsp.FileURI(at), x.told(ctx, at, text)
}

// retell has the server know what all files that are open say now. Those that are not to be read any more are closed.
func (x *server) retell(ctx context.Context, u *engine.Use) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	for at := range x.open {
		text, err := read(ctx, u, at)
		switch fault.Of(err) {
		case fault.NotFound, fault.Invalid, fault.Denied, fault.TooLarge:
			err = x.closed(ctx, at)
		default:
			if err == nil {
				err = x.told(ctx, at, text)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// told sends the text of a file to the server, where that has another one. The caller has the turn.
func (x *server) told(ctx context.Context, at string, text []byte) error {
	sum, d := sha256.Sum256(text), x.open[at]
	now := lsp.Document{URI: lsp.FileURI(at), Language: dialect(x.key.language, at), Version: 1, Text: string(text)}
	switch {
	case d != nil && d.sum == sum:
		return nil
	case d != nil:
		now.Version = d.version + 1
		if err := x.client.Change(ctx, now); err != nil {
			return err
		}
	case len(x.open) >= MaxOpen:
		return fault.New(fault.Exhausted, "%d files are open, the most that may be", len(x.open)).WithRemedy("close some")
	default:
		if err := x.client.Open(ctx, now); err != nil {
			return err
		}
	}
	x.open[at] = &document{now.Version, sum}
	return nil
}

// close has the server forget a file.
func (x *server) close(ctx context.Context, u *engine.Use, file string) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	for _, at := range x.places(u, file) {
		if x.open[at] != nil {
			return x.closed(ctx, at)
		}
	}
	return nil
}

// closed is close of a file that is open. The caller has the turn.
func (x *server) closed(ctx context.Context, at string) error {
	if err := x.client.CloseDocument(ctx, lsp.FileURI(at)); err != nil {
		return err
	}
	delete(x.open, at)
	return nil
}

// read returns the text of a file, with the rights of the sandbox's user.
func read(ctx context.Context, u *engine.Use, at string) ([]byte, error) {
	user := ""
	if err := u.Place(&user, &at); err != nil {
		return nil, err
	}
	fi, r, err := u.Client().ReadFile(ctx, at, sandbox.ReadFileOptions{User: user, Length: MaxFile + 1})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(r, MaxFile+1)); err != nil {
		return nil, err
	}
	if b.Len() > MaxFile {
		return nil, fault.New(fault.TooLarge, "the file %s has %d bytes, more than the %d that a language server is told", sandbox.Clip(at, 200), fi.Size, MaxFile)
	}
	if !utf8.Valid(b.Bytes()) {
		return nil, fault.InvalidField("path", "%s is no text in UTF-8", sandbox.Clip(at, 200))
	}
	return b.Bytes(), nil
}
