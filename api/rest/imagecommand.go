// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/images"
	"sandpit.dev/fault"
)

// commandFields are the fields of a request that say what is run.
type commandFields struct {
	image **bool
	shell *string
	argv  *[]string
	cwd   **string
}

// imageCommand puts into a request that asks for the image's own command what that is.
func (a *API) imageCommand(ctx context.Context, c *idempotency.Call, ref string, f commandFields) error {
	if *f.image == nil || !**f.image {
		return nil
	}
	if f.shell != nil {
		return fault.InvalidField("image_command", "and command are both given").WithRemedy("send words in place of the image's own as argv, or leave image_command out")
	}
	k, err := images.Kept(a.Keeper)
	if err != nil {
		return err
	}
	got, err := k.Command(ctx, c.Caller, ref, *f.argv)
	if err != nil {
		return err
	}
	*f.image, *f.argv = nil, got.Argv
	if *f.cwd == nil && got.Cwd != "" {
		*f.cwd = &got.Cwd
	}
	return nil
}
