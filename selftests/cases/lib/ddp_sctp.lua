-- SPDX-License-Identifier: GPL-2.0
-- Decodes DDP over SCTP (RFC 5043), which Wireshark does not know: the DDP-SSN, and behind it what
-- Wireshark's dissector of iWARP finds. Use: tshark -X lua_script:ddp_sctp.lua; Lua scripts are not loaded
-- for uid 0.

local segment = Proto("ddp_sctp", "DDP Segment Chunk")
local control = Proto("ddp_sctp_control", "DDP Stream Session Control Chunk")
local FUNCTIONS = {
	"Initiate", "Accept", "Reject", "Terminate",
	"Enhanced Initiate", "Enhanced Accept", "Enhanced Reject",
}
local ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN")
local control_ssn = ProtoField.uint16("ddp_sctp_control.ssn", "DDP-SSN")
local func = ProtoField.uint16("ddp_sctp_control.function", "Function", base.DEC, FUNCTIONS)
local private = ProtoField.bytes("ddp_sctp_control.private", "Private Data")

segment.fields = { ssn }
control.fields = { control_ssn, func, private }

function segment.dissector(buffer, pinfo, tree)
	tree:add(segment, buffer(0, 2)):add(ssn, buffer(0, 2))
	return 2 + Dissector.get("iwarp_ddp_rdmap"):call(buffer(2):tvb(), pinfo, tree)
end

function control.dissector(buffer, pinfo, tree)
	local own = tree:add(control, buffer())
	own:add(control_ssn, buffer(0, 2))
	own:add(func, buffer(2, 2))
	if buffer:len() > 4 then
		own:add(private, buffer(4))
	end
	return buffer:len()
end

DissectorTable.get("sctp.ppi"):add(16, segment)
DissectorTable.get("sctp.ppi"):add(17, control)
