// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/languages"
	"sandpit.dev/lsp"
)

// Languages has the language servers of sandboxes asked; *languages.Service does.
type Languages interface {
	Start(ctx context.Context, c access.Caller, ref string, at languages.At) error
	Stop(ctx context.Context, c access.Caller, ref string, at languages.At) error
	Open(ctx context.Context, c access.Caller, ref string, at languages.At, file string) error
	Close(ctx context.Context, c access.Caller, ref string, at languages.At, file string) error
	Complete(ctx context.Context, c access.Caller, ref string, at languages.At, file string, p lsp.Position) (lsp.CompletionList, error)
	DocumentSymbols(ctx context.Context, c access.Caller, ref string, at languages.At, file string) ([]lsp.Symbol, error)
	Symbols(ctx context.Context, c access.Caller, ref string, at languages.At, query string) ([]lsp.Symbol, error)
}
