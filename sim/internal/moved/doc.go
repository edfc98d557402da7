// Package moved judges the moves of the data of ephemeral disks in a simulated cluster. A [Judge] reads the
// tables of the disks of all machines, which only the doubles write, the rows of the servers, and the records of the
// clients. It shares no code with the clients and the servers.
//
// The guarantee is S4. It is about groups whose data moves:
//
//   - No task of an allocation starts while only a part of the data is in its folders.
//   - The first task of a replacement starts after the end of its wait: it finds all data of the newest earlier
//     allocation that has any, or its record states that the data was given up.
//   - Data is lost only with a cause. The causes are: it does not fit; a fault of one of the two machines or of the
//     copy, or a node that the servers did not reach, in the time of the copy; the data waited longer than the
//     retention; another allocation has it; the work had run to completion.
//   - While the servers have data as kept, its client keeps it. From the entry on with which a replacement has it, the
//     servers have it as copied.
//   - A client gives a copy up that brings nothing for a minute.
//   - A drain that does not end at its deadline ends only when no replacement still waits for data of its
//     node, unless it only marks.
//   - When faults have ended for some time, nothing stays: what has arrived for an allocation without progress, the
//     data that a client keeps longer than its retention, the wait of a replacement for data that is ready, the turn
//     of a copy that does not run, and a disk without a record.
package moved
