// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// Output is a frame, exactly if that was asked for.
func Output(f sandbox.Frame, exact bool) *v1.Output {
	out := &v1.Output{At: f.At.UTC()}
	if exact {
		out.Data, out.DataBase64 = httpapi.EncodeExact(f.Data)
		return out
	}
	out.Data, out.DataBase64 = httpapi.EncodeText(f.Data, false)
	return out
}
