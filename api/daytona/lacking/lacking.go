// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package lacking refuses operations that Daytona's clients know and this server has not, each with its reason, before anything
// is read of the request.
package lacking

import (
	"context"
	"net/http"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
)

// Operation is what is refused.
type Operation struct {
	Pattern string // methods separated by commas, and the path
	Why     string // begins with what there is not
	Remedy  string // what to do instead; may be empty
	Status  int    // 0: 422
}

// Operations returns the rows of a coat's table that refuse what is listed. prefix begins their names in the audit log.
func Operations(prefix string, list []Operation) (all []httpapi.Operation) {
	for _, o := range list {
		methods, path, _ := strings.Cut(o.Pattern, " ")
		for method := range strings.SplitSeq(methods, ",") {
			name := prefix + method + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "").Replace(path)
			all = append(all, httpapi.Raw(name, method+" "+path, "", http.StatusOK, func(context.Context, *httpapi.Call, *httpapi.NoInput) error {
				err := error(fault.New(fault.Unsupported, "%s", o.Why).WithRemedy("%s", o.Remedy))
				if o.Status != 0 {
					err = guard.WithStatus(o.Status, err)
				}
				return err
			}))
		}
	}
	return all
}
