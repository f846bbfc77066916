// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// entryCost is what an entry of a directory costs beside its names while it is told: as it came, and as it is written.
const entryCost = 512

// Directory returns the entries of a directory, at most as many as o says, and whether there are more, or more than the agent
// sends of one. reserve takes room for them, by the thousand. [Files.ListFiles] has another bound, in bytes.
func Directory(ctx context.Context, f Files, c access.Caller, ref, path string, o sandbox.ListFilesOptions, reserve func(context.Context, int64) error) (all []sandbox.FileInfo, more bool, err error) {
	var cost int64
	more, err = f.EachFile(ctx, c, ref, path, o, func(e sandbox.FileInfo) error {
		all = append(all, e)
		cost += entryCost + 2*int64(len(e.Name)+len(e.Path)+len(e.Target))
		if len(all)%1000 != 0 {
			return nil
		}
		taken := cost
		cost = 0
		return reserve(ctx, taken)
	})
	if err == nil {
		err = reserve(ctx, cost)
	}
	return all, more, err
}
