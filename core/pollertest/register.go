package pollertest

import (
	"os"

	"github.com/stretchr/testify/require"

	"weft/core"
)

// What may be registered, and what not.
var registerTests = []test{
	{"a descriptor that is registered already", func(w *world) {
		handle, system := w.socket(core.IPv4)
		_, err := w.table.Open(system, 0)
		require.Equal(w, core.EExist, err)
		w.close(handle)
	}},
	{"a descriptor that is not open", func(w *world) {
		system, err := w.Sockets.Open(core.IPv4)
		require.NoError(w, err)
		w.Sockets.Close(system)
		for _, bad := range []int32{system, -1, 1 << 30} {
			_, err = w.table.Open(bad, 0)
			require.Equal(w, core.EInval, err, "%d", bad)
		}
	}},
	{"a regular file", func(w *world) {
		file, err := os.CreateTemp("", "file")
		require.NoError(w, err)
		defer os.Remove(file.Name())
		defer file.Close()
		handle, err := w.table.Open(int32(file.Fd()), w.Sockets.Kind(int32(file.Fd())))
		if w.RegularFile != 0 {
			require.Equal(w, w.RegularFile, err)
			return
		}
		require.NoError(w, err)
		w.close(handle)
	}},
	{"the same number again, after its close", func(w *world) {
		for range 50 {
			client, server := w.pair(core.IPv4)
			o := w.receive(server.handle, 3, 0)
			w.send(client.handle, "new")
			o.ends(0, "new")
			w.close(client.handle)
			w.close(server.handle)
		}
	}},
	{"closed twice", func(w *world) {
		handle, _ := w.socket(core.IPv4)
		w.close(handle)
		require.Equal(w, core.EBadHandle, w.table.Close(handle, w.ready))
	}},
}
