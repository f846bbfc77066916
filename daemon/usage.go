// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
)

// UsageConfig is how long it is kept what projects used.
type UsageConfig struct {
	Keep time.Duration `yaml:"keep"` // zero: 9600h, which is 400 days
}

func (c UsageConfig) check() error {
	if c.Keep != 0 && c.Keep < usage.LeastKeep {
		return fault.InvalidField("usage.keep", "%v is less than %v, and budgets are of a month", c.Keep, usage.LeastKeep).WithRemedy("write it as 9600h for 400 days; leave it out for that")
	}
	return nil
}
