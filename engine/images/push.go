// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/image/oci"
)

// Pushed is what a push did.
type Pushed = oci.Pushed

// Push puts an image into a registry under a reference, and returns when it is there; tell is called with the bytes that
// were sent of all. It ends with ctx. It needs the scope server:admin, since the credentials are the operator's.
func (k *Keeper) Push(ctx context.Context, c access.Caller, name, reference string, tell func(sent, total int64)) (Pushed, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return Pushed{}, err
	}
	defer leave()
	return k.store.Push(ctx, name, reference, tell)
}
