# Makes and describes trees, for the snapshot tests: tree.py grow|scan|coarse DIR...
import hashlib, json, os, socket, stat, sys

coarse = sys.argv[1] == 'coarse' # as an image of a container has it: times to the second, no attributes of users
second = 1_000_000_000 if coarse else 1

def grow(top):
    os.makedirs(top + '/d/e/f')
    def put(name, data=b'x', mode=0o644):
        with open(top + '/' + name, 'wb') as f: f.write(data)
        os.chmod(top + '/' + name, mode)
    put('plain', b'hello\n'); put('empty', b''); put('run', b'#!/bin/sh\n', 0o755); put('secret', b's', 0o600)
    put('set', b'x', 0o6755); put('big', os.urandom(3 << 20)); put('d/e/f/deep'); put('.hidden'); put('.wh', b'no whiteout')
    put('name with\nnewline \xc3\xa4 "'.encode('latin-1').decode()); put('-' + 'n' * 200)
    with open(os.fsencode(top) + b'/not \xff text', 'wb') as f: f.write(b'bytes')
    with open(top + '/holes', 'wb') as f:
        f.truncate(8 << 20); f.seek(5 << 20); f.write(b'in the middle')
    os.link(top + '/plain', top + '/d/other name'); os.link(top + '/plain', top + '/third')
    os.symlink('plain', top + '/rel'); os.symlink('/etc/passwd', top + '/abs'); os.symlink('../../../../../../out', top + '/up')
    os.symlink('nowhere', top + '/dangling'); os.symlink('d', top + '/to dir')
    os.mkfifo(top + '/fifo', 0o640)
    os.mkdir(top + '/empty dir', 0o2750); os.mkdir(top + '/closed', 0o700); put('closed/in'); os.mkdir(top + '/sticky'); os.chmod(top + '/sticky', 0o1777)
    try:
        os.setxattr(top + '/plain', 'user.note', b'a \x00 note'); os.setxattr(top + '/d', 'user.dir', b'')
    except OSError as e:
        if e.errno != 95: raise # not every file system has them
    for n, name in enumerate(['plain', 'd/e/f', 'd', 'holes']):
        os.utime(top + '/' + name, ns=(1_000_000_000_123_456_000 + n, 1_100_000_000_987_654_000 + n))
    os.utime(top + '/rel', ns=(0, 900_000_000_000_000_000), follow_symlinks=False)

def scan(top):
    first, all = {}, {}
    for at, dirs, files in os.walk(os.fsencode(top)):
        dirs.sort()
        for name in sorted(dirs + files):
            p = os.path.join(at, name)
            s = os.lstat(p)
            if coarse and p in (b'/etc/hosts', b'/etc/hostname', b'/etc/resolv.conf', b'/etc/mtab'): continue # each container's own
            if stat.S_ISSOCK(s.st_mode): continue # no archive has them
            e = [oct(s.st_mode), s.st_uid, s.st_gid, s.st_mtime_ns // second]
            if stat.S_ISREG(s.st_mode):
                # A file of the image is one of other images, too, which come and go beside this test.
                links = s.st_nlink if b'grown' in p else 0
                e += [links, s.st_size, first.setdefault((s.st_dev, s.st_ino), os.fsdecode(p)), hashlib.sha256(open(p, 'rb').read()).hexdigest() if os.access(p, os.R_OK) else '']
            if stat.S_ISLNK(s.st_mode): e += [os.fsdecode(os.readlink(p))]
            else:
                try: e += [(a, os.getxattr(p, a).hex()) for a in sorted(os.listxattr(p)) if not coarse or not a.startswith("user.")]
                except PermissionError: pass
            all[ascii(os.fsdecode(p))] = e
    return all

if sys.argv[1] == 'grow':
    for top in sys.argv[2:]: grow(top)
else:
    out = {}
    for top in sys.argv[2:]: out.update(scan(top))
    print(json.dumps(out, indent=0, sort_keys=True))
