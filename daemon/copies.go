// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"time"

	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// copies are what the Engine of a runtime was given of images.
type copies struct {
	of   runtime.Imager
	name string
	log  *slog.Logger
}

// copyPatience is how long a deletion waits for a copy to be removed.
const copyPatience = 30 * time.Second

// RemoveImage tells in the log why a copy stays.
func (c copies) RemoveImage(ctx context.Context, digest string) {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	switch err := c.of.RemoveImage(ctx, digest); {
	case fault.Is(err, fault.Conflict):
		c.log.Info("a copy of an image that was deleted is in use by somebody else, and stays", "runtime", c.name, "digest", digest, "error", err)
	case err != nil:
		c.log.Warn("a copy of an image that was deleted cannot be removed, and stays", "runtime", c.name, "digest", digest, "error", err)
	}
}

// copiesOf returns those of all drivers that have some.
func copiesOf(drivers map[string]runtime.Driver, log *slog.Logger) (out []images.Copies) {
	for name, d := range drivers {
		if of, ok := d.(runtime.Imager); ok {
			out = append(out, copies{of, name, log})
		}
	}
	return out
}
