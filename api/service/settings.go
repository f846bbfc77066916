// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"

	"sandpit.dev/access"
	"sandpit.dev/settings"
)

// Settings shows and changes what need not wait for a restart.
type Settings interface {
	List(ctx context.Context, c access.Caller) ([]settings.Setting, error)
	// Configuration returns what the server started with, without what is secret.
	Configuration(ctx context.Context, c access.Caller) ([]settings.Configured, error)
	// Change sets what the patch has by name, all of it or nothing; null takes back what was set.
	Change(ctx context.Context, c access.Caller, patch map[string]json.RawMessage) ([]settings.Setting, error)
}
