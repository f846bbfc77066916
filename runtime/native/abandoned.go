// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime"
)

// InspectAbandoned looks for groups without processes of namespaces that no driver has open, and
// removes them if it is to. gone reports whether the directory of the namespace's driver is gone
// for certain, or has no use for them; release, if it is not nil, is called when they are removed.
func (*Kind) InspectAbandoned(ctx context.Context, gone func(namespace, dir string) (release func(), ok bool), mend bool) ([]runtime.Finding, error) {
	var found []runtime.Finding
	err := cgroup.EachUnused(func(u *cgroup.Unused) bool {
		release, ok := gone(u.Namespace, u.Owner)
		if release != nil {
			defer release()
		}
		if ok {
			f := runtime.Finding{Name: "cgroups " + u.Namespace, What: fmt.Sprintf("the groups sandpit/%s are left of a server that is gone, on %s", u.Namespace, u.Owner)}
			if mend {
				if f.Err = u.Remove(); f.Err == nil {
					f.Done = "they were removed"
				}
			}
			if errors.Is(f.Err, unix.EBUSY) {
				return ctx.Err() == nil // a process is in one after all
			}
			found = append(found, f)
		}
		return ctx.Err() == nil
	})
	return found, err
}

// Bare reports whether a driver's directory says of no sandbox that it is up, or was when its
// server ended.
func (*Kind) Bare(p runtime.Place) (bool, error) {
	files, err := os.ReadDir(host.InstancesDir(p.Dir, p.Namespace))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(files) == 0, err
}
