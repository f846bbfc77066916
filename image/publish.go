// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"os"

	"sandpit.dev/image/oci"
)

// Publish puts what is below a directory into a registry, as an image of one layer that the reference names, with labels; what the
// registry has is not sent again. It returns the digest of the manifest, which is the same for the same files.
func (s *Store) Publish(ctx context.Context, dir, reference string, labels map[string]string) (string, error) {
	made, err := oci.Save(ctx, oci.Rootfs{Dir: dir, Reference: reference, Config: oci.Config{Labels: labels}, RootOwned: os.Geteuid() != 0})
	if err != nil {
		return "", err
	}
	pushed, err := s.others.Push(ctx, made, reference, nil)
	return pushed.Digest, err
}
