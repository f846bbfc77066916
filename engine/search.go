// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// SearchFiles looks for lines of files, or for files, below a directory. dir is the
// directory as it was found.
func (e *Engine) SearchFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &o.User, func(k *check) { k.path("path", path) })
	if err != nil {
		return dir, nil, end, err
	}
	defer u.End()
	dir, found, end, err = u.l.client.Search(ctx, path, o)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return dir, found, end, err
}
