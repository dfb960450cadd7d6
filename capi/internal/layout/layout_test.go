package layout

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/core"
)

func TestGoAndCAgreeOnEveryField(t *testing.T) {
	structures := map[string]reflect.Type{}
	missing := map[string]bool{}
	for _, value := range []any{
		core.Op{}, core.Timer{}, core.IO{}, core.Datagram{}, core.Ring{}, core.Wheel{}, core.WorkerMemory{}, core.DescriptorMemory{}, core.RuntimeMemory{},
	} {
		structure := reflect.TypeOf(value)
		structures[structure.Name()] = structure
		missing[structure.Name()] = true
		for i := range structure.NumField() {
			if name := structure.Field(i).Name; name != "_" {
				missing[structure.Name()+"."+name] = true
			}
		}
	}
	for _, row := range Rows() {
		structure, ok := structures[row.Structure]
		require.True(t, ok, "Go has no %s", row.Structure)
		if row.Field == "" {
			require.Equal(t, structure.Size(), row.Offset, "size of %s", row.Structure)
			delete(missing, row.Structure)
			continue
		}
		field, ok := structure.FieldByName(row.Field)
		require.True(t, ok, "Go has no %s.%s", row.Structure, row.Field)
		require.Equal(t, field.Offset, row.Offset, "%s.%s", row.Structure, row.Field)
		delete(missing, row.Structure+"."+row.Field)
	}
	require.Empty(t, missing, "C does not know these")
}

func TestGoAndCAgreeOnEveryConstant(t *testing.T) {
	slotOwner := core.SlotOwner
	require.Equal(t, []int64{
		core.WorkersMax, core.WheelLevels, core.WheelSlots, core.WheelTickShift, core.ChunkDescriptors, core.ChunksMax,
		int64(core.StateFree), int64(core.StateRunning), int64(core.StateStopping), int64(core.StateStopped),
		int64(core.Awake), int64(core.Announced), int64(core.Parked), int64(core.ParkedInPoller), int64(core.Notified),
		int64(core.LifeAbsent), int64(core.LifeStarting), int64(core.LifeRunning), int64(core.LifeAsked), int64(core.LifeCached),
		int64(core.LifeDismissed), int64(core.LifeLeaving),
		int64(core.ReasonTimers), int64(core.ReasonPoll), int64(core.ReasonStop), int64(core.ReasonRetire), int64(core.ReasonReplace),
		int64(core.InjectClosed),
		int64(core.SlotReady), int64(core.SlotClosed), int64(core.SlotHeld), int64(slotOwner), core.Receive, core.Send,
		int64(core.HintReceiveDrained), int64(core.HintHangup),
	}, Numbers())
}

func TestGoAndCAgreeOnEveryError(t *testing.T) {
	want := map[int32][2]string{}
	for code, row := range core.ErrorNames() {
		want[int32(code)] = row
	}
	require.Equal(t, want, Errors())
}
