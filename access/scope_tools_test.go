// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"testing"

	"sandpit.dev/access"
)

func TestSeesTools(t *testing.T) {
	for name, c := range map[string]struct {
		scopes    []access.Scope
		core, out bool
	}{
		"WithoutAScopeOfToolsAll": {[]access.Scope{access.SandboxesRead}, true, true},
		"WithOneThatAlone":        {[]access.Scope{access.SandboxesWrite, access.ToolsCore}, true, false},
		"AnAdminIsNarrowed, too":  {[]access.Scope{access.Admin, access.ToolsState}, false, false},
		"TheZeroCallerAll":        {nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			caller := access.Caller{Scopes: c.scopes}
			if got := caller.SeesTools("core"); got != c.core {
				t.Errorf("core: got %v, want %v", got, c.core)
			}
			if got := caller.SeesTools("ports"); got != c.out {
				t.Errorf("ports: got %v, want %v", got, c.out)
			}
		})
	}
	caller := access.Caller{Scopes: []access.Scope{access.ToolsCore}}
	if caller.May(access.SandboxesRead) || caller.May(access.SandboxesWrite) {
		t.Error("a scope of tools gives rights")
	}
}
