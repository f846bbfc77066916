// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/git"
)

// Git runs git's commands inside; *git.Service is it.
type Git interface {
	// Clone clones a repository into a directory. Where git fails, the cause of the error is a *git.Failure.
	Clone(ctx context.Context, c access.Caller, ref string, r git.CloneRequest) (git.Cloned, error)
}
