// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/templates"
	"sandpit.dev/template"
)

// Templates keeps templates. One is named by its name, by NAME@VERSION or by its id.
type Templates interface {
	// Create adds a version; one that is the same as the newest is that one, and added is false.
	Create(ctx context.Context, c access.Caller, r templates.Request) (t *template.Template, added bool, err error)
	// Provide completes a request for a sandbox by an image that is built of a Dockerfile, or pulled, for it.
	Provide(ctx context.Context, c access.Caller, r *engine.CreateRequest, of templates.Request) (abandon func(), err error)
	// List returns the versions of the project and of the server.
	List(ctx context.Context, c access.Caller) (*templates.Kept, error)
	// HasDefault reports whether the caller's project, or the server, has a default template.
	HasDefault(ctx context.Context, c access.Caller) (bool, error)
	Get(ctx context.Context, c access.Caller, ref string) (*template.Template, error)
	// Delete deletes a version, or by a name all of its versions.
	Delete(ctx context.Context, c access.Caller, ref string) error
	// SetActive says whether sandboxes can be made of a version, or by a name of all of its versions.
	SetActive(ctx context.Context, c access.Caller, ref string, active bool) (*template.Template, error)
	// Log writes what the build of a version has written, and with follow what it writes until it has ended.
	Log(ctx context.Context, c access.Caller, ref string, w io.Writer, follow bool, flush func() error) error
	// SetDefault makes a template the default of the project, or of the server, or not any more.
	SetDefault(ctx context.Context, c access.Caller, ref string, server, on bool) (*template.Template, error)
}
