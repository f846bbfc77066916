// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"io/fs"
	"strconv"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type changeFile struct {
	byQuery
	Body v1.ChangeFile
}

func (a *API) changeFile(ctx context.Context, c *httpapi.Call, in *changeFile) (v1.FileChanged, error) {
	p, err := httpapi.Place("", in.Path, false)
	if err != nil {
		return v1.FileChanged{}, err
	}
	b := &in.Body
	o := sandbox.ChangeFileOptions{
		User: httpapi.Given(in.User), Owner: b.Owner, Group: b.Group, Recursive: b.Recursive,
		Attributes: b.Attributes, Remove: b.RemoveAttributes, Replace: b.ReplaceAttributes,
	}
	if b.Mode != nil {
		n, err := strconv.ParseUint(*b.Mode, 8, 32)
		if err != nil || n > 0o1777 {
			return v1.FileChanged{}, fault.InvalidField("mode", "%q is not a valid octal mode up to 1777", sandbox.Clip(*b.Mode, 40)).
				WithRemedy("set-user-id and set-group-id bits have no effect in a sandbox")
		}
		mode := fs.FileMode(n & 0o777)
		if n&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		o.Mode = &mode
	}
	ctx, done := c.Bound(ctx)
	defer done()
	sum, err := a.Files.ChangeFile(ctx, c.Caller, in.Ref, p, o)
	if err != nil {
		return v1.FileChanged{}, byUser(err)
	}
	out := v1.FileChanged{File: fileOf(sum.File), Changed: sum.Changed, LeftOut: make([]v1.LeftOut, 0, len(sum.Left)), LeftOutTotal: sum.LeftAll, Ended: sum.Ended}
	for _, l := range sum.Left {
		out.LeftOut = append(out.LeftOut, v1.LeftOut(l))
	}
	return out, nil
}

// attributesOf reads attributes as a query has them; nil: there are none.
func attributesOf(text *string) (map[string]string, error) {
	if text == nil {
		return nil, nil
	}
	out := make(map[string]string)
	if err := json.Unmarshal([]byte(*text), &out); err != nil || out == nil {
		return nil, fault.InvalidField("attributes", "%q is not a JSON object of strings", sandbox.Clip(*text, 80)).
			WithRemedy(`write it like {"source":"crawl"}, escaped as a query is`)
	}
	return out, nil
}
