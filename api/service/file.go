// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/engine/files"
	"sandpit.dev/sandbox"
)

// Files reads, writes, lists and watches files, with the rights of a user inside.
type Files interface {
	ReadFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error)
	// WriteFile writes a file whole or not at all.
	WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.WriteFileOptions) (info sandbox.FileInfo, created bool, err error)
	// PackFiles opens a file or a tree as a tar archive, and UnpackFiles makes files of one.
	PackFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.PackFilesOptions) (sandbox.FileInfo, *files.Archive, error)
	UnpackFiles(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.UnpackFilesOptions) (sandbox.FilesPacked, error)
	StatFile(ctx context.Context, c access.Caller, ref, path, user string) (sandbox.FileInfo, error)
	// EachFile calls each with the entries of a directory in order, until it returns an error;
	// sandbox.ErrEnough ends the list without one.
	EachFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions, each func(sandbox.FileInfo) error) (truncated bool, err error)
	ListFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions) (files []sandbox.FileInfo, truncated bool, err error)
	SearchFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error)
	// ChangeFile changes mode, owner, group and attributes.
	ChangeFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ChangeFileOptions) (sandbox.FileChanged, error)
	// ReplaceInFiles replaces text in files, and tells what became of each.
	ReplaceInFiles(ctx context.Context, c access.Caller, ref string, files []string, o sandbox.ReplaceFilesOptions) ([]sandbox.FileReplaced, error)
	MakeDir(ctx context.Context, c access.Caller, ref, path string, o sandbox.MakeDirOptions) error
	MoveFile(ctx context.Context, c access.Caller, ref, from, to string, o sandbox.MoveFileOptions) error
	RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error
	// Key says which key addresses of a sandbox's files are signed by, KeyOf the same to who checks a signature, and
	// ExchangeKey ends all that were signed before.
	Key(ctx context.Context, c access.Caller, ref string) (files.Key, error)
	KeyOf(ctx context.Context, id sandbox.ID) (files.Key, error)
	ExchangeKey(ctx context.Context, c access.Caller, ref string) (files.Key, error)
	WatchFiles(ctx context.Context, c access.Caller, ref string, r files.WatchRequest, sink func([]sandbox.FileEvent) error) (files.WatchEnd, error)
}
