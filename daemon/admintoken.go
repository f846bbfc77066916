// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/access/bearer"
	"sandpit.dev/api/mcp"
	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/store"
)

// AdminTokenFile is the file in the data directory that holds the administrator's token if none
// is configured.
const AdminTokenFile = "admin-token"

// openTokens returns the authority. The administrator's tokens are the one that is configured and
// the one on file; without either, it makes one.
func openTokens(cfg Config, db store.Store, log *slog.Logger) (*bearer.Authority, error) {
	path := filepath.Join(cfg.Data, AdminTokenFile)
	var admin []bearer.Secret
	if cfg.AdminToken != "" {
		admin = append(admin, bearer.NewSecret(cfg.AdminToken))
	}
	kept, err := os.ReadFile(path)
	switch {
	case err == nil:
		token := strings.TrimSpace(string(kept))
		if err := bearer.CheckAdminToken(token); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the file %s holds no usable token", path).
				WithRemedy("remove the file: a new token is made at the next start")
		}
		admin = append(admin, bearer.NewSecret(token))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(fault.Unavailable, err, "the file %s cannot be read", path)
	case len(admin) == 0:
		token := "spt_admin_" + rand.Text() + rand.Text()
		if err := atomicfile.Write(path, []byte(token+"\n"), 0o600); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the file %s cannot be written", path)
		}
		admin = append(admin, bearer.NewSecret(token))
	}
	return bearer.New(db, bearer.Options{Admins: admin, Profiles: mcp.Profiles(), Logger: log})
}
