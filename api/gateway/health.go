// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"sandpit.dev/api/httpapi"
)

// SDKVersion is the version of the SDK that this coat is tried with. An SDK of another one says so when it connects.
const SDKVersion = "0.61.0"

type health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

func (a *API) health(context.Context, *httpapi.Call, *httpapi.NoInput) (health, error) {
	return health{"ok", SDKVersion}, nil
}
