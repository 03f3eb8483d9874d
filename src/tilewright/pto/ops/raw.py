"""Raw machine ops: copies, loads, products and registers as the machine's instructions have them.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.op import unmeant
from tilewright.pto.text.form import Typing, free

_FAMILY = "raw machine ops"

unmeant("pto.copy_ubuf_to_cbuf copy_cbuf_to_ubuf copy_ubuf_to_ubuf copy_cbuf_to_bt", free("ppiiiii"), _FAMILY)
unmeant("pto.copy_gm_to_cbuf copy_cbuf_to_fbuf", free("ppiiii"), _FAMILY)
unmeant("pto.copy_gm_to_cbuf_multi_nd2nz copy_gm_to_cbuf_multi_dn2nz", free("ppiiiiiii"), _FAMILY)
unmeant("pto.load_cbuf_to_ca load_cbuf_to_cb load_cbuf_to_cb_mx", free("ppiiiiii"), _FAMILY)
unmeant("pto.load_cbuf_to_ca_s4 load_cbuf_to_cb_s4", free("ppiiiiiii"), _FAMILY)
unmeant("pto.load_cbuf_to_ca_mx", free("ppiii*"), _FAMILY)
unmeant("pto.mad_raw mad_mx_raw", free("pppi"), _FAMILY)
unmeant("pto.mad_bias_raw mad_mx_bias_raw", free("pppxx?"), _FAMILY)
unmeant("pto.copy_matrix_cc_to_gm copy_matrix_cc_to_cbuf copy_matrix_cc_to_ub", free("ppii"), _FAMILY)
unmeant("pto.set_loop3_para", free("ii"), _FAMILY)
unmeant(
    "pto.set_channel_para set_fpc set_quant_pre set_relu_alpha set_fix_clip_relu set_mte2_nz_para set_pad_val_outtol1"
    " set_mov_pad_val",
    free("xx*"),
    _FAMILY,
)
unmeant("pto.set_loop1_stride_outtol1 set_loop2_stride_outtol1 set_loop_size_outtol1", free("ii*"), _FAMILY)
unmeant("pto.set_atomic_s32 set_atomic_s8", free(""), _FAMILY)
unmeant("pto.get_ctrl", free("", "i", typing=Typing.RESULT), _FAMILY)
unmeant("pto.set_ctrl", free("i"), _FAMILY)
unmeant("pto.sbitset0 sbitset1", free("ii", "i"), _FAMILY)
unmeant("pto.get_vms4_sr", free("", "iiii", typing=Typing.RESULT), _FAMILY)
unmeant("pto.uvld", free("pi", "u"), _FAMILY)
unmeant("pto.vselrv2 vintlvv2 vdintlvv2 vaddreluconv vmulconv", free("x*", "x*"), _FAMILY)
